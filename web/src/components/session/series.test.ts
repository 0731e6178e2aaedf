import { describe, expect, it } from "vitest";
import { extend, isCounter, keepPoints, rates, type Sample } from "./series";

const sample = (value: number, more: Partial<Sample> = {}): Sample => ({
  name: "mem_used",
  deviceId: "",
  value,
  capacity: 100,
  unit: "bytes",
  quality: "MEASURED",
  ...more,
});

describe("extend", () => {
  it("keeps one series per container, metric and device", () => {
    let series = extend([], "k1", 1, [sample(1), sample(5, { deviceId: "gpu0" })]);
    series = extend(series, "k2", 1, [sample(9)]);
    expect(series.map((s) => s.points[0]!.value)).toEqual([1, 5, 9]);
  });

  it("ignores repeated and unavailable samples", () => {
    let series = extend([], "k", 5, [sample(1)]);
    series = extend(series, "k", 5, [sample(2)]);
    series = extend(series, "k", 6, [sample(3, { quality: "UNAVAILABLE" })]);
    expect(series[0]!.points).toEqual([{ at: 5, value: 1 }]);
  });

  it("drops the oldest samples", () => {
    let series = extend([], "k", 0, [sample(0)]);
    for (let at = 1; at <= keepPoints; at++) series = extend(series, "k", at, [sample(at)]);
    expect(series[0]!.points).toHaveLength(keepPoints);
    expect(series[0]!.points[0]!.at).toBe(1);
  });
});

it("turns a counter into a rate, also over a restart", () => {
  const points = [
    { at: 0, value: 100 },
    { at: 2000, value: 300 },
    { at: 3000, value: 10 },
  ];
  expect(rates(points).map((p) => p.value)).toEqual([100, 0]);
  expect([isCounter("net_rx"), isCounter("cpu_used_ms"), isCounter("mem_used")]).toEqual([true, true, false]);
});
