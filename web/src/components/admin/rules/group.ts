import { graphql, type ResultOf } from "../../../api/graphql";
import { words } from "../../../words";

export const GroupFields = graphql(`
  fragment GroupFields on ResourceGroup {
    id name description active public sessionTypes allowedNetworks strategy split topology order holdAfter
    halfLife lookback lostPolicy lostAfter maxAttempts pendingTimeout preemption preemptionScope
    preemptionAfter permissions
    agents(first: 1) { totalCount }
    grants { id domain { id name } project { id name } user { id email } keypairID keypair { id accessKey } }
  }
`);
export type Group = ResultOf<typeof GroupFields>;

/** The types of sessions that users start, in the order in which they are shown. */
export const userTypes = [
  { value: "INTERACTIVE", label: words.SessionType.INTERACTIVE },
  { value: "BATCH", label: words.SessionType.BATCH },
] as const;

/** The types of sessions that a group can allow. */
export const sessionTypes = [...userTypes, { value: "INFERENCE", label: words.SessionType.INFERENCE }] as const;

/** How the scheduler selects an agent among those with enough capacity. */
export const strategies = [
  {
    value: "PACK",
    label: words.PlacementStrategy.PACK,
    help: "Keeps free capacity in large pieces that other sessions can use. Best if devices are shared.",
  },
  {
    value: "CONCENTRATED",
    label: words.PlacementStrategy.CONCENTRATED,
    help: "Fills one agent before the next, so that whole agents stay free.",
  },
  {
    value: "DISPERSED",
    label: words.PlacementStrategy.DISPERSED,
    help: "Uses the agent with the most free capacity, so that sessions disturb each other the least.",
  },
  { value: "ROUNDROBIN", label: words.PlacementStrategy.ROUNDROBIN, help: "Uses one agent after the other." },
] as const;

/** How the scheduler divides an amount that exceeds one device. */
export const splits = [
  { value: "FILL", label: words.DeviceSplit.FILL, help: "Uses whole devices, and one more device for the remainder." },
  {
    value: "EVENLY",
    label: words.DeviceSplit.EVENLY,
    help: "Uses the same amount of each device, and as few devices as possible.",
  },
  { value: "NONE", label: words.DeviceSplit.NONE, help: "Uses only whole devices, never a part of one." },
] as const;

/** How close to each other the devices of a container must be. */
export const topologies = [
  {
    value: "PREFER",
    label: words.DeviceTopology.PREFER,
    help: "Prefers devices that are close to each other, but does not require it.",
  },
  {
    value: "NODE",
    label: words.DeviceTopology.NODE,
    help: "A session stays pending rather than use devices of different nodes, unless they are linked.",
  },
  {
    value: "ROOT",
    label: words.DeviceTopology.ROOT,
    help: "A session stays pending rather than use devices of different PCIe roots, unless they are linked.",
  },
  {
    value: "LINKED",
    label: words.DeviceTopology.LINKED,
    help: "A session stays pending rather than use devices without a direct link, such as NVLink.",
  },
] as const;

/** What happens to sessions on an agent that is lost. */
export const lostPolicies = [
  {
    value: "WAIT",
    label: words.LostPolicy.WAIT,
    help: "Sessions wait until the agent reconnects or a user stops them.",
  },
  { value: "FAIL", label: words.LostPolicy.FAIL, help: "The sessions fail." },
  {
    value: "RESCHEDULE",
    label: words.LostPolicy.RESCHEDULE,
    help: "Sessions start again on other agents. Data in their containers is lost.",
  },
] as const;

/** What happens to preempted sessions. */
export const preemptions = [
  { value: "OFF", label: words.Preemption.OFF, help: "No session is stopped for another one." },
  {
    value: "TERMINATE",
    label: words.Preemption.TERMINATE,
    help: "A preemptible session is stopped when a session with a higher priority needs its capacity.",
  },
  {
    value: "RESCHEDULE",
    label: words.Preemption.RESCHEDULE,
    help: "A preemptible session is stopped when a session with a higher priority needs its capacity, and returns to the queue.",
  },
] as const;

/** Whose sessions can be preempted. */
export const preemptionScopes = [
  { value: "USER", label: words.PreemptionScope.USER },
  { value: "PROJECT", label: words.PreemptionScope.PROJECT },
  { value: "DOMAIN", label: words.PreemptionScope.DOMAIN },
  { value: "GROUP", label: words.PreemptionScope.GROUP },
] as const;

/** The order of sessions with the same priority. */
export const orders = [
  { value: "FIFO", label: words.QueueOrder.FIFO, help: "The session that was created first starts first." },
  {
    value: "LIFO",
    label: words.QueueOrder.LIFO,
    help: "The session that was created last starts first. The oldest can stay pending for a long time.",
  },
  {
    value: "DRF",
    label: words.QueueOrder.DRF,
    help: "The user with the smallest share of their scarcest resource goes first (DRF).",
  },
  {
    value: "FAIR_SHARE",
    label: words.QueueOrder.FAIR_SHARE,
    help: "The domain, project and user with the least recent usage go first.",
  },
] as const;

/**
 * Returns when the scheduler starts to reserve agents for the session at the head of the queue, as a phrase to
 * translate.
 */
export function reservationPhrase(seconds: number): Phrase {
  if (seconds < 0) return ["never"];
  if (seconds === 0) return ["immediately"];
  return seconds % 60 === 0
    ? ["after {{count}} minutes", { count: seconds / 60 }]
    : ["after {{count}} seconds", { count: seconds }];
}

type Phrase = [key: string, values?: Record<string, string | number>];

/** Returns who can use a group, as a phrase to translate. */
export function accessPhrase(g: Pick<Group, "active" | "public"> & { grants: readonly unknown[] }): Phrase {
  if (!g.active) return ["no one (inactive)"];
  if (g.public) return ["everyone"];
  return g.grants.length === 0 ? ["no one yet"] : ["{{count}} grants", { count: g.grants.length }];
}

/** Why a group can be used, by the enum value of the server. */
export const reasons: Record<string, string> = {
  SUPERADMIN: "as a superadmin",
  PUBLIC: "open to everyone",
  DOMAIN: "granted to the domain",
  PROJECT: "granted to the project",
  USER: "granted to the user",
  KEYPAIR: "granted to a keypair",
};
