import { parseTime, printTime } from "./amounts";
import { type Group, sessionTypes } from "./group";

/** The default, the minimum and the maximum of the times of a group, in seconds. */
const times = {
  holdAfter: { usual: 600, least: 0, most: 30 * 86_400 },
  halfLife: { usual: 7 * 86_400, least: 60, most: 365 * 86_400 },
  lookback: { usual: 28 * 86_400, least: 60, most: 365 * 86_400 },
  lostAfter: { usual: 300, least: 0, most: 30 * 86_400 },
  preemptionAfter: { usual: 300, least: 0, most: 365 * 86_400 },
  pendingTimeout: { usual: 0, least: 0, most: 365 * 86_400 },
} as const;
type Time = keyof typeof times;

/** The form state of a group. Times are texts such as 10 min. */
export interface GroupDraft
  extends Pick<
    Group,
    | "name"
    | "description"
    | "active"
    | "public"
    | "strategy"
    | "split"
    | "topology"
    | "order"
    | "lostPolicy"
    | "preemption"
    | "preemptionScope"
  > {
  sessionTypes: Group["sessionTypes"];
  /** Networks, separated by line breaks, commas or spaces. */
  allowedNetworks: string;
  /** Whether the scheduler reserves agents for the head of the queue. */
  hold: boolean;
  times: Record<Time, string>;
  maxAttempts: number | string;
}

export function draftOf(group: Group | null): GroupDraft {
  const seconds = (time: Time) => (group && group[time] >= 0 ? group[time] : times[time].usual);
  return {
    name: group?.name ?? "",
    description: group?.description ?? "",
    active: group?.active ?? true,
    // A new group is closed until it is granted: opening it to everyone is a deliberate choice.
    public: group?.public ?? false,
    sessionTypes: [...(group?.sessionTypes ?? sessionTypes.map((s) => s.value))],
    allowedNetworks: (group?.allowedNetworks ?? []).join("\n"),
    strategy: group?.strategy ?? "PACK",
    split: group?.split ?? "FILL",
    topology: group?.topology ?? "PREFER",
    order: group?.order ?? "FIFO",
    lostPolicy: group?.lostPolicy ?? "WAIT",
    preemption: group?.preemption ?? "OFF",
    preemptionScope: group?.preemptionScope ?? "USER",
    maxAttempts: group?.maxAttempts ?? 3,
    hold: (group?.holdAfter ?? 0) >= 0,
    times: Object.fromEntries((Object.keys(times) as Time[]).map((time) => [time, printTime(seconds(time))])) as Record<
      Time,
      string
    >,
  };
}

/** Returns the input for the server, and the errors as phrases to translate. */
export function readDraft(draft: GroupDraft) {
  const wrong: Record<string, [key: string, values?: Record<string, string>]> = {};
  if (draft.sessionTypes.length === 0) wrong.sessionTypes = ["Choose at least one."];
  const attempts = Number(draft.maxAttempts);
  if (!Number.isInteger(attempts) || attempts < 1 || attempts > 100)
    wrong.maxAttempts = ["Enter a value from {{least}} to {{most}}.", { least: "1", most: "100" }];
  const read = (time: Time) => {
    const { least, most, usual } = times[time];
    const n = parseTime(draft.times[time]);
    if (n === null) wrong[time] = ["Enter a time such as 10min, 12h or 7d."];
    else if (n < least || n > most)
      wrong[time] = ["Enter a value from {{least}} to {{most}}.", { least: printTime(least), most: printTime(most) }];
    return n ?? usual;
  };
  const input = {
    name: draft.name.trim(),
    description: draft.description.trim(),
    public: draft.public,
    sessionTypes: draft.sessionTypes,
    allowedNetworks: draft.allowedNetworks.split(/[\s,]+/).filter(Boolean),
    strategy: draft.strategy,
    split: draft.split,
    topology: draft.topology,
    order: draft.order,
    holdAfter: draft.hold ? read("holdAfter") : -1,
    halfLife: read("halfLife"),
    lookback: read("lookback"),
    lostPolicy: draft.lostPolicy,
    lostAfter: read("lostAfter"),
    maxAttempts: attempts,
    pendingTimeout: read("pendingTimeout"),
    preemption: draft.preemption,
    preemptionScope: draft.preemptionScope,
    preemptionAfter: read("preemptionAfter"),
  };
  return { input, wrong };
}
