import { graphql, type ResultOf } from "../../../api/graphql";

/** Why a session waits, but for what would let it start, which is asked for by itself. */
export const PendingParts = graphql(`
  fragment PendingParts on PendingReport {
    stage position decidedAt summary agents estimatedStart until holds
    dropped { check slot count }
    limits { scope holder policy what used requested limit }
    nearest { agent slot requested free }
    order { order levels { scope usage weight factor } }
    ahead(first: 3) { position mine priority waitingSince stage session { id name } }
  }
`);
export type Report = ResultOf<typeof PendingParts>;

/** What a session has to pass, in this order; it waits for the first that it does not. */
export const stages = [
  { key: "GROUP", label: "Group open" },
  { key: "HELD", label: "Start time and dependencies" },
  { key: "LIMITS", label: "Limits" },
  { key: "ROOM", label: "Capacity" },
  { key: "ORDER", label: "Turn in the queue" },
] as const;

/** How a stage stands when the session waits for another. */
export function standing(stage: string, waitsFor: string): "passed" | "waits" | "later" {
  const at = stages.findIndex((s) => s.key === stage);
  const now = stages.findIndex((s) => s.key === waitsFor);
  return at === now ? "waits" : at < now ? "passed" : "later";
}

/** The cause of the wait, as a word in a list. */
const stageWords: Record<Report["stage"], string> = {
  GROUP: "the resource group is closed",
  HELD: "start time or dependencies",
  LIMITS: "a limit",
  ROOM: "capacity",
  ORDER: "turn in the queue",
};
export const stageWord = (stage: Report["stage"] | null): string => (stage ? stageWords[stage] : "starts next");
