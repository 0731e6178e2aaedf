import { graphql, type VariablesOf } from "../../../api/graphql";

export const UpdateUser = graphql(`
  mutation ChangeUser($input: UpdateUserInput!) {
    updateUser(input: $input) {
      user {
        id email username fullName role status permissions
        account {
          allowedAddresses containerUid containerGid containerGids passwordChangeRequired passwordChangedAt
          totpEnabledAt
        }
      }
    }
  }
`);

type Input = VariablesOf<typeof UpdateUser>["input"];
export type Role = NonNullable<Input["role"]>;
export type Status = NonNullable<Input["status"]>;

/** The stored settings of a user. */
export interface Known {
  id: string;
  username: string;
  fullName: string;
  role: Role;
  account: {
    allowedAddresses: string[];
    containerUid: number | null;
    containerGid: number | null;
    containerGids: number[];
    passwordChangeRequired: boolean;
  } | null;
}

/** The form state of a user: numbers are strings, and list items are separated by line breaks or spaces. */
export interface UserDraft {
  username: string;
  fullName: string;
  role: Role;
  allowedAddresses: string;
  containerUid: string;
  containerGid: string;
  containerGids: string;
  passwordChangeRequired: boolean;
}

const text = (n: number | null | undefined) => (n === null || n === undefined ? "" : String(n));

export const words = (list: string) => list.split(/[\s,;]+/).filter(Boolean);

export function draftOf(user: Known): UserDraft {
  return {
    username: user.username,
    fullName: user.fullName,
    role: user.role,
    allowedAddresses: (user.account?.allowedAddresses ?? []).join("\n"),
    containerUid: text(user.account?.containerUid),
    containerGid: text(user.account?.containerGid),
    containerGids: (user.account?.containerGids ?? []).join(" "),
    passwordChangeRequired: user.account?.passwordChangeRequired ?? false,
  };
}

const ids = ["containerUid", "containerGid", "containerGids"] as const;
const same = (a: readonly unknown[], b: readonly unknown[]) => a.length === b.length && a.every((x, i) => x === b[i]);

/** Returns the changes as input for the server, or the invalid fields. */
export function changesOf(
  user: Known,
  draft: UserDraft,
): { input: Input | null; wrong: Partial<Record<keyof UserDraft, string>> } {
  const before = draftOf(user);
  const wrong: Partial<Record<keyof UserDraft, string>> = {};
  const input: Input = { id: user.id };
  if (draft.username !== before.username) input.username = draft.username.trim();
  if (draft.fullName !== before.fullName) input.fullName = draft.fullName.trim();
  if (draft.role !== before.role) input.role = draft.role;
  if (draft.passwordChangeRequired !== before.passwordChangeRequired)
    input.passwordChangeRequired = draft.passwordChangeRequired;
  const addresses = words(draft.allowedAddresses);
  if (!same(addresses, words(before.allowedAddresses))) input.allowedAddresses = addresses;

  for (const key of ids)
    if (words(draft[key]).some((w) => !/^\d+$/.test(w)))
      wrong[key] =
        key === "containerGids" ? "Enter whole numbers separated by spaces." : "Enter a whole number, or leave empty.";
  if (Object.keys(wrong).length > 0) return { input: null, wrong };

  const changed = ids.filter((key) => !same(words(draft[key]), words(before[key])));
  const gone = changed.filter((key) => key !== "containerGids" && words(draft[key]).length === 0);
  const left = ids.some((key) => words(draft[key]).length > 0);
  if (gone.length > 0 && !left) input.clearContainer = true;
  else if (gone.length > 0) for (const key of gone) wrong[key] = "Enter a number, or leave all three fields empty.";
  else
    for (const key of changed) {
      const numbers = words(draft[key]).map(Number);
      if (key === "containerGids") input.containerGids = numbers;
      else input[key] = numbers[0];
    }
  return { input: Object.keys(wrong).length > 0 ? null : input, wrong };
}

export const changed = (input: Input | null) => input !== null && Object.keys(input).length > 1;
