import { graphql, type ResultOf } from "../../../api/graphql";
import { slotName } from "../../../slots";
import { slotsLine } from "../../format";
import { hints, type Kind, parse, print, readSlots, type SlotTexts, textsOf } from "./amounts";

export const PolicyFields = graphql(`
  fragment PolicyFields on ResourcePolicy {
    id name totalSlots unlistedSlots maxPendingSlots maxSessions maxPendingSessions maxContainersPerSession maxPriority
    maxSessionLifetime idleTimeout maxPublicAppTime maxVfolders maxScopeBytes maxDiskBytes maxLogins
    maxCustomizedImages maxImageBytes maxDeployments
    permissions
  }
`);
export type Policy = ResultOf<typeof PolicyFields>;

/** The limits that are a single number, in the order in which they are shown. */
export const limits = [
  { key: "maxSessions", label: "Concurrent sessions", kind: "count", part: "sessions" },
  { key: "maxPendingSessions", label: "Pending sessions", kind: "count", part: "sessions" },
  { key: "maxContainersPerSession", label: "Containers per session", kind: "count", part: "sessions" },
  { key: "maxPriority", label: "Highest priority", kind: "count", part: "sessions" },
  { key: "maxSessionLifetime", label: "Session lifetime", kind: "seconds", part: "sessions" },
  { key: "idleTimeout", label: "Idle timeout", kind: "seconds", part: "sessions" },
  { key: "maxPublicAppTime", label: "Public apps", kind: "seconds", part: "sessions" },
  { key: "maxDiskBytes", label: "Disk per container", kind: "bytes", part: "sessions" },
  { key: "maxVfolders", label: "Folders", kind: "count", part: "rest" },
  { key: "maxScopeBytes", label: "Storage", kind: "bytes", part: "rest" },
  { key: "maxDeployments", label: "Deployments", kind: "count", part: "rest" },
  { key: "maxLogins", label: "Concurrent logins", kind: "count", part: "rest" },
  { key: "maxCustomizedImages", label: "Own images", kind: "count", part: "rest" },
  { key: "maxImageBytes", label: "Size of own images", kind: "bytes", part: "rest" },
] as const satisfies readonly { key: keyof Policy; label: string; kind: Kind; part: string }[];

export type LimitKey = (typeof limits)[number]["key"];

/** The form state of a policy: each limit is a string, empty for no limit. */
export interface Draft {
  name: string;
  totalSlots: SlotTexts;
  unlistedSlots: Policy["unlistedSlots"];
  maxPendingSlots: SlotTexts;
  plain: Record<LimitKey, string>;
}

export function draftOf(policy: Policy | null): Draft {
  const text = (kind: Kind, n: number | null | undefined) => (n == null ? "" : print[kind](n));
  return {
    name: policy?.name ?? "",
    totalSlots: textsOf(policy?.totalSlots ?? {}),
    unlistedSlots: policy?.unlistedSlots ?? "UNLIMITED",
    maxPendingSlots: textsOf(policy?.maxPendingSlots ?? {}),
    plain: Object.fromEntries(limits.map((l) => [l.key, text(l.kind, policy?.[l.key])])) as Draft["plain"],
  };
}

export interface Limits extends Partial<Record<LimitKey, number>> {
  totalSlots: Record<string, string>;
  unlistedSlots: Policy["unlistedSlots"];
  maxPendingSlots: Record<string, string>;
}

/** Parses the form, and returns an error per invalid field. An empty field is no limit. */
export function readDraft(draft: Draft): { limits: Limits; wrong: Record<string, string> } {
  const total = readSlots(draft.totalSlots);
  const pending = readSlots(draft.maxPendingSlots);
  const wrong: Record<string, string> = {};
  for (const [slot, why] of Object.entries(total.wrong)) wrong[`totalSlots.${slot}`] = why;
  for (const [slot, why] of Object.entries(pending.wrong)) wrong[`maxPendingSlots.${slot}`] = why;
  const read: Limits = { totalSlots: total.slots, unlistedSlots: draft.unlistedSlots, maxPendingSlots: pending.slots };
  for (const { key, kind } of limits) {
    if (!draft.plain[key].trim()) continue;
    const n = parse[kind](draft.plain[key]);
    if (n === null) wrong[key] = hints[kind];
    else read[key] = n;
  }
  return { limits: read, wrong };
}

/** Removes a limit in an update; limits that an update does not contain stay. */
const unlimited = -1;

export const changeOf = (read: Limits) => ({
  ...(Object.fromEntries(limits.map((l) => [l.key, unlimited])) as Record<LimitKey, number>),
  ...read,
});

type Phrase = [key: string, values?: Record<string, string | number>];

const phrases: Record<LimitKey, (n: number) => Phrase> = {
  maxSessions: (count) => ["{{count}} concurrent sessions", { count }],
  maxPendingSessions: (count) => ["{{count}} pending sessions", { count }],
  maxContainersPerSession: (count) => ["{{count}} containers per session", { count }],
  maxPriority: (n) => ["priority up to {{n}}", { n }],
  maxSessionLifetime: (n) => ["sessions stop after {{time}}", { time: print.seconds(n) }],
  idleTimeout: (n) => ["idle sessions stop after {{time}}", { time: print.seconds(n) }],
  maxPublicAppTime: (n) =>
    n > 0 ? ["public apps for up to {{time}}", { time: print.seconds(n) }] : ["no public apps"],
  maxDiskBytes: (n) => ["{{size}} of disk per container", { size: print.bytes(n) }],
  maxVfolders: (count) => ["{{count}} folders", { count }],
  maxScopeBytes: (n) => ["{{size}} of storage", { size: print.bytes(n) }],
  maxLogins: (count) => ["{{count}} concurrent logins", { count }],
  maxCustomizedImages: (count) => ["{{count}} own images", { count }],
  maxDeployments: (count) => ["{{count}} deployments", { count }],
  maxImageBytes: (n) => ["{{size}} of own images", { size: print.bytes(n) }],
};

/** Returns the limits of a policy as phrases to translate. */
export function words(policy: Policy): Phrase[] {
  const out: Phrase[] = [];
  const listed = Object.entries(policy.totalSlots);
  const line = slotsLine(policy.totalSlots);
  if (line) out.push(["{{slots}} in use at once", { slots: line }]);
  for (const [slot, n] of listed) if (Number(n) === 0) out.push(["no {{slot}}", { slot: slotName(slot) }]);
  if (policy.unlistedSlots === "ZERO") out.push(listed.length > 0 ? ["no other resources"] : ["no resources at all"]);
  const waiting = slotsLine(policy.maxPendingSlots);
  if (waiting) out.push(["{{slots}} requested by pending sessions", { slots: waiting }]);
  for (const { key } of limits) if (policy[key] !== null) out.push(phrases[key](policy[key]));
  return out;
}
