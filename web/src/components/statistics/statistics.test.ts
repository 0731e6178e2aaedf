import { describe, expect, it } from "vitest";
import { before, type CapacityRow, capacityPlot, percent, type WaitRow, waitPlot } from "./statistics";

const row = (at: string, used: string, capacity = "100"): CapacityRow => ({
  slot: "cpu",
  capacity,
  used,
  idle: "20",
  unmeasured: "0",
  promised: "0",
  unallocated: "30",
  outOfService: "25.5",
  beyond: "0",
  keys: [{ dimension: "DAY", value: at, label: at }],
});
const labels = { used: "u", idle: "i", unmeasured: "m", promised: "p", unallocated: "f", outOfService: "o" };

describe("statistics", () => {
  it("compare with the range before", () => {
    const range = { from: new Date("2026-03-08T00:00:00Z"), to: new Date("2026-03-15T00:00:00Z") };
    expect(before(range).from.toISOString()).toBe("2026-03-01T00:00:00.000Z");
  });
  it("stack the parts in the order of time", () => {
    const plot = capacityPlot([row("2026-03-02T00:00:00Z", "10"), row("2026-03-01T00:00:00Z", "24.5")], "cpu", labels);
    expect(plot.lines[0]!.value).toEqual([24.5, 10]);
    expect(plot.lines[1]!.low).toEqual([24.5, 10]);
    expect(plot.lines.at(-1)!.value[0]).toBe(100);
    expect(percent("1", "0")).toBe(0);
  });
  it("leave a gap where a percentile is not shown", () => {
    const keys: WaitRow["keys"] = [{ dimension: "DAY", value: "2026-03-01T00:00:00Z", label: "" }];
    const plot = waitPlot([{ keys, count: 6, p50: 2, p90: null, p99: null, max: null }], { p50: "half", p90: "most" });
    expect(plot.lines.map((l) => l.value)).toEqual([[2], [null]]);
  });
});
