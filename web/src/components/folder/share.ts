import { graphql, type ResultOf } from "../../api/graphql";
import { words } from "../../words";

export const ShareFields = graphql(`
  fragment ShareFields on VfolderShare {
    id createdAt email permission status answeredAt mine vfolderName inviterEmail
    inviter { id email fullName } user { id email fullName }
  }
`);
export type Share = ResultOf<typeof ShareFields>;
export type FolderPermission = Share["permission"];

/** The permissions on a folder, the weakest first. */
export const permissions = [
  {
    value: "READ_ONLY",
    label: words.FolderPermission.READ_ONLY,
    hint: "See and download the files, and mount the folder read-only.",
  },
  { value: "READ_WRITE", label: words.FolderPermission.READ_WRITE, hint: "Also create, change and delete files." },
  {
    value: "READ_WRITE_DELETE",
    label: words.FolderPermission.READ_WRITE_DELETE,
    hint: "Also move the folder to the trash.",
  },
] as const satisfies readonly { value: FolderPermission; label: string; hint: string }[];

/** A phrase to translate. */
export const permissionWord = (p: FolderPermission) => words.FolderPermission[p];

/** The most users that the server invites in one request. */
export const maxInvitations = 50;

/**
 * Returns the e-mail addresses in a pasted text, without duplicates. They can be separated by line breaks, commas or
 * semicolons, and can have names and angle brackets.
 */
export function addresses(text: string): string[] {
  const found = text
    .split(/[,;\n]+/)
    .flatMap((part) => /<([^<>]*)>/.exec(part)?.[1] ?? part.trim().split(/\s+/))
    .map((a) => a.trim().toLowerCase())
    .filter(Boolean);
  return [...new Set(found)];
}

/** Returns the accepted shares, then the open invitations. */
export const liveShares = <S extends Pick<Share, "status" | "email">>(shares: readonly S[]): S[] =>
  shares
    .filter((s) => s.status === "PENDING" || s.status === "ACCEPTED")
    .sort((a, b) => Number(a.status === "PENDING") - Number(b.status === "PENDING") || a.email.localeCompare(b.email));
