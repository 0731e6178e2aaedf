import { describe, expect, it } from "vitest";
import { type TimelineSession, timeline } from "./timeline";

const at = (s: number) => new Date(Date.UTC(2026, 0, 1, 0, 0, s)).toISOString();
const now = Date.parse(at(60));

const session = (more: Partial<TimelineSession>): TimelineSession => ({
  status: "PENDING",
  createdAt: at(0),
  scheduledAt: null,
  startedAt: null,
  terminatedAt: null,
  history: [],
  ...more,
});

const states = (s: TimelineSession) => timeline(s, now).map((step) => `${step.key}:${step.state}`);

describe("timeline", () => {
  it("begins with the step queued", () => {
    const [queued, ...rest] = timeline(session({}), now);
    expect(queued).toEqual({ key: "queued", state: "now", at: at(0), took: 60_000 });
    expect(rest.every((s) => s.state === "todo" && s.at === null)).toBe(true);
  });

  it("measures each step until the next one", () => {
    const steps = timeline(
      session({
        status: "RUNNING",
        scheduledAt: at(5),
        startedAt: at(20),
        history: [
          { at: at(5), toStatus: "SCHEDULED" },
          { at: at(6), toStatus: "PREPARING" },
          { at: at(15), toStatus: "PREPARED" },
          { at: at(16), toStatus: "CREATING" },
          { at: at(20), toStatus: "RUNNING" },
        ],
      }),
      now,
    );
    expect(steps.map((s) => s.took)).toEqual([5_000, 1_000, 10_000, 4_000, 40_000, null]);
    expect(steps.at(-1)!.state).toBe("todo");
  });

  it("skips steps that a cancelled session never reached", () => {
    const s = session({ status: "CANCELLED", terminatedAt: at(9) });
    expect(states(s)).toEqual([
      "queued:done",
      "placed:todo",
      "pulling:todo",
      "starting:todo",
      "running:todo",
      "ended:done",
    ]);
    expect(timeline(s, now)[0]!.took).toBe(9_000);
  });

  it("skips a step that was not needed", () => {
    const s = session({
      status: "RUNNING",
      scheduledAt: at(5),
      startedAt: at(8),
      history: [
        { at: at(6), toStatus: "PREPARED" },
        { at: at(7), toStatus: "CREATING" },
      ],
    });
    expect(states(s).slice(0, 5)).toEqual([
      "queued:done",
      "placed:done",
      "pulling:skipped",
      "starting:done",
      "running:now",
    ]);
  });

  it("ignores a placement that was undone", () => {
    const s = session({
      history: [
        { at: at(5), toStatus: "SCHEDULED" },
        { at: at(8), toStatus: "PENDING" },
      ],
    });
    expect(states(s).slice(0, 2)).toEqual(["queued:now", "placed:todo"]);
  });

  it("marks the end of a failed session", () => {
    const s = session({ status: "ERROR", scheduledAt: at(5), terminatedAt: at(9) });
    expect(states(s).at(-1)).toBe("ended:failed");
  });
});
