import { graphql, type ResultOf } from "../../../api/graphql";

/** The pending report without its suggestions, which are fetched separately. */
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

/** The stages that a session must pass, in order. It waits at the first one that it does not pass. */
export const stages = [
  { key: "GROUP", label: "Group open" },
  { key: "HELD", label: "Start time and dependencies" },
  { key: "LIMITS", label: "Limits" },
  { key: "ROOM", label: "Capacity" },
  { key: "ORDER", label: "Turn in the queue" },
] as const;

/** Returns the state of a stage while the session waits at another one. */
export function stageState(stage: string, waitsFor: string): "passed" | "waits" | "later" {
  const at = stages.findIndex((s) => s.key === stage);
  const now = stages.findIndex((s) => s.key === waitsFor);
  return at === now ? "waits" : at < now ? "passed" : "later";
}

/** The pending reasons as short texts for lists. */
const stageWords: Record<Report["stage"], string> = {
  GROUP: "the resource group is closed",
  HELD: "start time or dependencies",
  LIMITS: "a limit",
  ROOM: "capacity",
  ORDER: "turn in the queue",
};
export const stageWord = (stage: Report["stage"] | null): string => (stage ? stageWords[stage] : "starts next");
