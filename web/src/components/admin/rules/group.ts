import { type ResultOf, graphql } from "../../../api/graphql";

export const GroupFields = graphql(`
  fragment GroupFields on ResourceGroup {
    id name description active public sessionTypes allowedNetworks strategy split topology order holdAfter halfLife lookback lostPolicy lostAfter maxAttempts pendingTimeout preemption preemptionScope preemptionAfter permissions
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

/** How an agent is chosen among those that have room. */
export const strategies = [
  { value: "pack", label: "Pack", help: "Leaves what is free in pieces that others can still use. Best where devices are shared." },
  { value: "concentrated", label: "Concentrated", help: "Fills one agent before the next, so that whole machines stay free." },
  { value: "dispersed", label: "Dispersed", help: "Takes the emptiest agent, so that sessions disturb each other least." },
  { value: "roundrobin", label: "In turn", help: "Takes one agent after the other." },
] as const;

/** How an amount is given that is more than one device has. */
export const splits = [
  { value: "fill", label: "Fill devices", help: "Whole devices in full, and the rest from one more." },
  { value: "evenly", label: "Evenly", help: "The same from each of as few devices as have room." },
  { value: "none", label: "Whole devices only", help: "Whole devices in full, and never a rest." },
] as const;

/** How near to each other the devices of a container are. */
export const topologies = [
  { value: "prefer", label: "As near as can be", help: "Near ones are taken first; far ones rather than none." },
  { value: "node", label: "On one NUMA node", help: "A session waits rather than get devices of different nodes, unless they are linked." },
  { value: "root", label: "On one PCIe root", help: "A session waits rather than get devices of different PCIe roots, unless they are linked." },
  { value: "linked", label: "Linked", help: "A session waits rather than get devices without a link of their own, such as NVLink." },
] as const;

/** What becomes of sessions on an agent that is lost. */
export const lostPolicies = [
  { value: "wait", label: "Wait for it", help: "Sessions wait until it is back or somebody ends them." },
  { value: "fail", label: "End them", help: "Sessions end as failed." },
  { value: "reschedule", label: "Start them anew", help: "Sessions start anew on other agents; what was in their containers is lost." },
] as const;

/** What becomes of sessions that may be ended for others. */
export const preemptions = [
  { value: "off", label: "Never", help: "Sessions run until they end." },
  { value: "terminate", label: "End them", help: "Sessions that allow it end when one of a higher priority needs their room." },
  { value: "reschedule", label: "End them, to wait again", help: "Sessions that allow it end when one of a higher priority needs their room, and wait for their turn again." },
] as const;

/** Whose sessions make room. */
export const preemptionScopes = [
  { value: "user", label: "of the same user" },
  { value: "project", label: "of the same project" },
  { value: "domain", label: "of the same domain" },
  { value: "group", label: "of everybody in the group" },
] as const;

/** Who comes first among sessions of one priority. */
export const orders = [
  { value: "fifo", label: "Oldest first", help: "First come, first served." },
  { value: "lifo", label: "Newest first", help: "Who came last goes first; the oldest may wait long." },
  { value: "drf", label: "Smallest share first", help: "Who holds the smallest part of what is scarcest to him goes first." },
  { value: "fair_share", label: "Fair share", help: "Who has used least in the last weeks goes first, among domains, projects and users." },
] as const;

/** How long the session at the head is passed, as a phrase to translate. */
export function holdText(seconds: number): Phrase {
  if (seconds < 0) return ["never"];
  if (seconds === 0) return ["at once"];
  return seconds % 60 === 0 ? ["after {{count}} minutes", { count: seconds / 60 }] : ["after {{count}} seconds", { count: seconds }];
}

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
