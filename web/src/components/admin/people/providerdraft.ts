import { graphql, type ResultOf, type VariablesOf } from "../../../api/graphql";

export const ProviderFields = graphql(`
  fragment ProviderFields on IdentityProvider {
    id name displayName issuer clientID scopes active autoProvision emailDomains createdAt domain { id name }
    project { id name }
  }
`);
export type Provider = ResultOf<typeof ProviderFields>;

export const CreateProvider = graphql(
  `
  mutation CreateProvider($input: CreateIdentityProviderInput!) {
    createIdentityProvider(input: $input) { identityProvider { ...ProviderFields } }
  }
`,
  [ProviderFields],
);
export const UpdateProvider = graphql(
  `
  mutation UpdateProvider($input: UpdateIdentityProviderInput!) {
    updateIdentityProvider(input: $input) { identityProvider { ...ProviderFields } }
  }
`,
  [ProviderFields],
);

/** The form state of an identity provider. Lists are separated by spaces. */
export interface ProviderDraft {
  name: string;
  displayName: string;
  issuer: string;
  clientID: string;
  clientSecret: string;
  scopes: string;
  autoProvision: boolean;
  emailDomains: string;
  domain: string;
  project: string | null;
}

const usualScopes = "email profile";

export const providerDraftOf = (p: Provider | null, domain: string): ProviderDraft => ({
  name: p?.name ?? "",
  displayName: p?.displayName ?? "",
  issuer: p?.issuer ?? "",
  clientID: p?.clientID ?? "",
  clientSecret: "",
  scopes: p ? p.scopes.join(" ") : usualScopes,
  autoProvision: p?.autoProvision ?? false,
  emailDomains: (p?.emailDomains ?? []).join(" "),
  domain: p?.domain.id ?? domain,
  project: p?.project?.id ?? null,
});

const words = (text: string) => text.split(/[\s,;]+/).filter(Boolean);

/** Returns the errors that can be found without a request. */
export function providerWrong(draft: ProviderDraft): Partial<Record<keyof ProviderDraft, string>> {
  const wrong: Partial<Record<keyof ProviderDraft, string>> = {};
  if (draft.autoProvision && words(draft.emailDomains).length === 0)
    wrong.emailDomains = "Enter at least one domain. Without one, anyone with an account at the provider could log in.";
  const bad = words(draft.emailDomains).find((d) => /[@*/\\:]/.test(d));
  if (bad) wrong.emailDomains = "Enter only the part after the @, such as corp.example.";
  if (draft.issuer && !/^https?:\/\/[^\s/?#]+[^\s?#]*$/.test(draft.issuer.trim()))
    wrong.issuer = "Enter a URL such as https://login.example.org.";
  return wrong;
}

export const newProvider = (d: ProviderDraft): VariablesOf<typeof CreateProvider>["input"] => ({
  name: d.name.trim(),
  displayName: d.displayName.trim(),
  issuer: d.issuer.trim(),
  clientID: d.clientID.trim(),
  clientSecret: d.clientSecret,
  scopes: words(d.scopes),
  autoProvision: d.autoProvision,
  emailDomains: words(d.emailDomains),
  domain: d.domain,
  project: d.project,
});

/**
 * Returns the update of a provider. Its name, issuer and domain cannot change; an empty secret keeps the stored one.
 */
export const changedProvider = (id: string, d: ProviderDraft): VariablesOf<typeof UpdateProvider>["input"] => ({
  id,
  displayName: d.displayName.trim(),
  clientID: d.clientID.trim(),
  ...(d.clientSecret ? { clientSecret: d.clientSecret } : {}),
  scopes: words(d.scopes),
  autoProvision: d.autoProvision,
  emailDomains: words(d.emailDomains),
  ...(d.project ? { project: d.project } : { clearProject: true }),
});

/** Returns the redirect URI that must be registered at the provider. */
export const callbackOf = (origin: string, name: string) => `${origin}/auth/oidc/${encodeURIComponent(name)}/callback`;
