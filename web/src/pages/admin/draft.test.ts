import { expect, it } from "vitest";
import { draftOf, parseDraft } from "./draft";

const policy = {
  name: "small", totalSlots: { cpu: "8", mem: String(32 * 1024 ** 3), "cuda.shares": "2" },
  maxSessions: 3, maxPendingSessions: null, maxVfolders: 0, maxScopeBytes: 100 * 1024 ** 3,
};

it("reads what it wrote", () => {
  const draft = draftOf(policy);
  expect(draft.totalSlots).toBe("cpu=8 mem=32g cuda.shares=2");
  const { name: _, ...limits } = policy;
  expect(parseDraft(draft)).toEqual({ limits, wrong: {} });
});

it("names what it cannot read", () => {
  const { wrong } = parseDraft({ ...draftOf(null), totalSlots: "cpu=many", maxSessions: "-1", maxScopeBytes: "lots" });
  expect(Object.keys(wrong).sort()).toEqual(["maxScopeBytes", "maxSessions", "totalSlots"]);
});
