import { slotName } from "../../../slots";
import { readable } from "../../../words";

export interface Dropped {
  check: string;
  slot: string;
  count: number;
}

export interface FunnelStage extends Dropped {
  /** The number of agents before the check; the next field is the number that passed it. */
  before: number;
  left: number;
}

/** Returns the number of agents left after each check, in the order in which the scheduler applies them. */
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

/** Returns the meaning of a check, as a phrase to translate. Unknown checks keep their own name. */
export function checkPhrase(check: string, slot: string): [key: string, values?: Record<string, string>] {
  const what = slotName(slot);
  switch (check) {
    case "not_asked_for":
      return ["not among the requested machines"];
    case "cordoned":
      return ["cordoned"];
    case "draining":
      return ["draining"];
    case "lost":
      return ["unreachable"];
    case "unfit":
      return ["not schedulable because of a host condition"];
    case "architecture":
      return ["different processor architecture than the image"];
    case "volume_missing":
      return ["no access to the volume of a folder"];
    case "group":
      return ["excluded by its session group"];
    case "network":
      return ["capacity for some containers, but no network to containers on other machines"];
    case "counters":
      return ["conflict with other partitions on the same hardware"];
    case "topology":
      return ["enough free {{what}}, but too far apart", { what }];
    case "reserved":
      return ["reserved for a session ahead of it"];
    case "slot_missing":
      return ["no {{what}}", { what }];
    case "slot_counts":
      return ["{{what}} is available only in other amounts", { what }];
    case "cpu":
      return ["not enough free CPU"];
    case "mem":
      return ["not enough free memory"];
    case "slot_total":
      return ["not enough free {{what}}", { what }];
    case "slot_contiguity":
      return ["enough {{what}} in total, but not on one device", { what }];
  }
  return [slot ? `${readable(check)} (${what})` : readable(check)];
}
