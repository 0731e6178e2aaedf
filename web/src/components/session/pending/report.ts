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
  { key: "group", label: "Group open" },
  { key: "held", label: "Start time and dependencies" },
  { key: "limits", label: "Limits" },
  { key: "room", label: "Capacity" },
  { key: "order", label: "Turn in the queue" },
] as const;

/** How a stage stands when the session waits for another. */
export function standing(stage: string, waitsFor: string): "passed" | "waits" | "later" {
  const at = stages.findIndex((s) => s.key === stage);
  const now = stages.findIndex((s) => s.key === waitsFor);
  return at === now ? "waits" : at < now ? "passed" : "later";
}

/** What one waits for, as a word in a list. */
export const stageWords: Record<string, string> = {
  group: "the resource group is closed",
  held: "start time or dependencies",
  limits: "a limit",
  room: "capacity",
  order: "turn in the queue",
  "": "starts next",
};
