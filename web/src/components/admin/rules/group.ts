import { type ResultOf, graphql } from "../../../api/graphql";

export const GroupFields = graphql(`
  fragment GroupFields on ResourceGroup {
    id name description active public sessionTypes permissions
    agents(first: 1) { totalCount }
    grants { id domain { id name } project { id name } user { id email } keypairID keypair { id accessKey } }
  }
`);
export type Group = ResultOf<typeof GroupFields>;

/** The types of sessions that a group can allow, in the order in which they are shown. */
export const sessionTypes = [
  { value: "interactive", label: "Interactive" },
  { value: "batch", label: "Batch" },
  { value: "inference", label: "Inference" },
] as const;

type Phrase = [key: string, values?: Record<string, string | number>];

/** To whom a group is open, as a phrase to translate. */
export function openTo(g: Pick<Group, "active" | "public"> & { grants: readonly unknown[] }): Phrase {
  if (!g.active) return ["nobody: inactive"];
  if (g.public) return ["everybody"];
  return g.grants.length === 0 ? ["nobody yet"] : ["{{count}} grants", { count: g.grants.length }];
}

/** What makes a group usable, as the server names it. */
export const reasons: Record<string, string> = {
  superadmin: "as a superadmin", public: "open to everybody", domain: "by the domain", project: "by the project", user: "granted to the user", keypair: "by a keypair",
};
