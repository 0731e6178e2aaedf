import { graphql, type VariablesOf } from "../../../api/graphql";

export const UpdateDomain = graphql(`
  mutation ChangeDomain($input: UpdateDomainInput!) {
    updateDomain(input: $input) {
      domain {
        id name description active registriesRestricted registries { id } totpRequired passwordMinLength
        passwordMaxAgeDays signUp
      }
    }
  }
`);

type Input = VariablesOf<typeof UpdateDomain>["input"];
export type SignUp = NonNullable<Input["signUp"]>;

/** The stored settings of a domain. */
export interface KnownDomain {
  id: string;
  name: string;
  description: string;
  totpRequired: boolean;
  passwordMinLength: number;
  passwordMaxAgeDays: number;
  signUp: SignUp;
  registriesRestricted: boolean;
  registries: { id: string }[];
}

/** The form state of a domain's settings. */
export interface DomainDraft {
  name: string;
  description: string;
  totpRequired: boolean;
  passwordMinLength: string;
  passwordMaxAgeDays: string;
  signUp: SignUp;
  registriesRestricted: boolean;
  registries: string[];
}

export const domainDraftOf = (d: KnownDomain): DomainDraft => ({
  name: d.name,
  description: d.description,
  totpRequired: d.totpRequired,
  passwordMinLength: String(d.passwordMinLength),
  passwordMaxAgeDays: String(d.passwordMaxAgeDays),
  signUp: d.signUp,
  registriesRestricted: d.registriesRestricted,
  registries: d.registries.map((r) => r.id).sort(),
});

const numbers = ["passwordMinLength", "passwordMaxAgeDays"] as const;
const plain = ["name", "description", "totpRequired", "signUp", "registriesRestricted"] as const;

/** Returns the changes as input for the server, and the names of the fields with invalid numbers. */
export function domainChanges(
  domain: KnownDomain,
  draft: DomainDraft,
): { input: Input; changed: boolean; wrong: Partial<Record<keyof DomainDraft, string>> } {
  const before = domainDraftOf(domain);
  const input: Input = { id: domain.id };
  const wrong: Partial<Record<keyof DomainDraft, string>> = {};
  for (const key of plain) if (draft[key] !== before[key]) Object.assign(input, { [key]: draft[key] });
  for (const key of numbers) {
    const typed = draft[key].trim();
    if (!/^\d{1,9}$/.test(typed)) wrong[key] = "Enter a whole number.";
    else if (typed !== before[key]) input[key] = Number(typed);
  }
  const registries = [...draft.registries].sort();
  if (registries.join() !== before.registries.join()) input.registries = registries;
  return { input, changed: Object.keys(input).length > 1, wrong };
}
