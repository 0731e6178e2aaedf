import { describe, expect, it } from "vitest";
import { checkPhrase, funnel } from "./funnel";

describe("funnel", () => {
  it("subtracts the dropped agents at each check", () => {
    const stages = funnel(8, [
      { check: "cordoned", slot: "", count: 1 },
      { check: "mem", slot: "mem", count: 0 },
      { check: "slot_contiguity", slot: "cuda.shares", count: 7 },
    ]);
    expect(stages.map((s) => [s.check, s.before, s.left])).toEqual([
      ["cordoned", 8, 7],
      ["slot_contiguity", 7, 0],
    ]);
  });

  it("never falls below 0", () => {
    expect(funnel(1, [{ check: "cpu", slot: "cpu", count: 3 }])[0]!.left).toBe(0);
  });

  it("is empty without agents or checks", () => expect(funnel(0, [])).toEqual([]));
});

describe("checkPhrase", () => {
  it("names the slot", () => {
    expect(checkPhrase("slot_contiguity", "cuda.shares")).toEqual([
      "enough {{what}} in total, but not on one device",
      { what: "cuda" },
    ]);
  });
  it("keeps the name of an unknown check", () => {
    expect(checkPhrase("taint_mismatch", "")).toEqual(["taint mismatch"]);
  });
});
