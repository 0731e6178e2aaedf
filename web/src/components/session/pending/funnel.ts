export interface Dropped {
  check: string;
  slot: string;
  count: number;
}

export interface FunnelStage extends Dropped {
  /** Agents that came into the check, and that passed it. */
  before: number;
  left: number;
}

/** How many agents are left after each check, in the order the scheduler applies them. */
export function funnel(agents: number, dropped: readonly Dropped[]): FunnelStage[] {
  let left = agents;
  return dropped
    .filter((d) => d.count > 0)
    .map((d) => {
      const before = left;
      left = Math.max(0, left - d.count);
      return { ...d, before, left };
    });
}

/** The slot as words, for a sentence about it. */
const slotWords = (slot: string) =>
  slot === "cpu" ? "CPU" : slot === "mem" ? "memory" : slot.replace(/\.(shares|device)$/, "");

/** What a check means, as a phrase to translate; unknown checks keep their own name. */
export function checkPhrase(check: string, slot: string): [key: string, values?: Record<string, string>] {
  const what = slotWords(slot);
  switch (check) {
    case "not_asked_for":
      return ["not among the agents that were asked for"];
    case "cordoned":
      return ["closed to new sessions"];
    case "draining":
      return ["being emptied"];
    case "lost":
      return ["out of reach"];
    case "unfit":
      return ["closed by a condition of its machine"];
    case "architecture":
      return ["another processor architecture than the image"];
    case "volume_missing":
      return ["does not reach the volume of a folder"];
    case "group":
      return ["kept off by its session group"];
    case "network":
      return ["room for some containers, but no network to those elsewhere"];
    case "counters":
      return ["in the way of others on the same hardware"];
    case "topology":
      return ["enough {{what}} free, but too far from each other", { what }];
    case "reserved":
      return ["held for a session before it"];
    case "slot_missing":
      return ["no {{what}} at all", { what }];
    case "slot_counts":
      return ["gives {{what}} in other amounts only", { what }];
    case "cpu":
      return ["not enough CPU free"];
    case "mem":
      return ["not enough memory free"];
    case "slot_total":
      return ["not enough {{what}} free", { what }];
    case "slot_contiguity":
      return ["enough {{what}} in sum, but not on one device", { what }];
  }
  return [slot ? `${check.replaceAll("_", " ")} (${what})` : check.replaceAll("_", " ")];
}
