/** The fields of a session that the timeline needs. */
export interface TimelineSession {
  status: string;
  createdAt: string;
  scheduledAt: string | null;
  startedAt: string | null;
  terminatedAt: string | null;
  history: { at: string; toStatus: string | null }[];
}

export type StepState = "done" | "now" | "todo" | "failed" | "skipped";

export interface Step {
  key: "queued" | "placed" | "pulling" | "starting" | "running" | "ended";
  state: StepState;
  at: string | null;
  /** Milliseconds until the next reached step; for the current step, until now. */
  took: number | null;
}

/** The status that begins each step, in the order of a session's life. */
const begins: [Step["key"], string[]][] = [
  ["queued", ["PENDING"]],
  ["placed", ["SCHEDULED"]],
  ["pulling", ["PREPARING", "PREPARED"]],
  ["starting", ["CREATING"]],
  ["running", ["RUNNING", "TERMINATING"]],
  ["ended", ["TERMINATED", "CANCELLED", "ERROR"]],
];

export const ended = (status: string) => ["TERMINATED", "CANCELLED", "ERROR"].includes(status);

export function timeline(session: TimelineSession, now: number): Step[] {
  const at = new Map<string, string>([["queued", session.createdAt]]);
  for (const event of session.history) {
    const step = begins.find(([, statuses]) => event.toStatus && statuses.includes(event.toStatus));
    // A session that was rescheduled passes a step again: the last time counts.
    if (step && step[0] !== "queued" && event.toStatus !== "PREPARED" && event.toStatus !== "TERMINATING") {
      at.set(step[0], event.at);
    }
  }
  if (session.scheduledAt) at.set("placed", at.get("placed") ?? session.scheduledAt);
  if (session.startedAt) at.set("running", at.get("running") ?? session.startedAt);
  if (session.terminatedAt) at.set("ended", session.terminatedAt);

  const present = begins.findIndex(([, statuses]) => statuses.includes(session.status));
  const over = ended(session.status);
  const bad = session.status === "ERROR";
  return begins.map(([key], i) => {
    const reached = at.has(key) && i <= present;
    const time = reached ? at.get(key)! : null;
    const following = begins.slice(i + 1, present + 1).find(([next]) => at.has(next));
    // An image that the agent already has is not pulled.
    const skipped = !reached && begins.slice(i + 1, present + 1).some(([later]) => later !== "ended" && at.has(later));
    const until = following ? Date.parse(at.get(following[0])!) : i === present && !over ? now : null;
    return {
      key,
      state: i === present ? (bad ? "failed" : over ? "done" : "now") : reached ? "done" : skipped ? "skipped" : "todo",
      at: time,
      took: time && until !== null ? Math.max(0, until - Date.parse(time)) : null,
    };
  });
}
