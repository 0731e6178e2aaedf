import { expect, test } from "vitest";
import { lineOf, plotsOf, summary, type TimeSeries } from "./history";

const at = (...seconds: number[]) => seconds.map((s) => new Date(Date.UTC(2026, 2, 29) + s * 1000).toISOString());
const from = Date.UTC(2026, 2, 29) / 1000;

function series(more: Partial<TimeSeries>): TimeSeries {
  const value = more.mean ?? more.maximum ?? [];
  return {
    subject: "k1",
    name: "mem_used",
    deviceId: "",
    unit: "bytes",
    capacity: 0,
    quality: "MEASURED",
    step: 60,
    at: at(...value.map((_, i) => i * 60)),
    mean: value,
    minimum: value,
    maximum: value,
    ...more,
  };
}

test("a time without samples is a gap", () => {
  const line = lineOf(series({ at: at(0, 60, 120, 600, 660), mean: [1, 2, 3, 4, 5] }), "");
  expect(line.at.map((t) => t - from)).toEqual([0, 60, 120, 180, 600, 660]);
  expect(line.value).toEqual([1, 2, 3, null, 4, 5]);
});

test("points that are kept only in a coarser grain are no gaps", () => {
  const line = lineOf(series({ step: 5, at: at(0, 60, 120, 180), mean: [1, 2, 3, 4] }), "");
  expect(line.value).toEqual([1, 2, 3, 4]);
});

test("a counter is shown as its increase per second, and a reset is no decrease", () => {
  const line = lineOf(series({ name: "net_rx", maximum: [0, 600, 1200, 60, 120], mean: [0, 1, 2, 3, 4] }), "");
  expect(line.value).toEqual([10, 10, 0, 1]);
  expect(line.low).toEqual([]);
});

test("a counter has no increase over a gap", () => {
  const line = lineOf(series({ name: "net_rx", at: at(0, 60, 120, 1000, 1060), maximum: [0, 60, 120, 900, 960] }), "");
  expect(line.value).toEqual([1, 1, null, 1]);
});

test("the lowest and highest samples of a step are a band", () => {
  const line = lineOf(series({ mean: [2, 2], minimum: [1, 2], maximum: [5, 2] }), "");
  expect([line.low, line.high]).toEqual([
    [1, 2],
    [5, 2],
  ]);
  expect(summary(line)).toEqual({ last: 2, mean: 2, peak: 5 });
});

test("one plot has the lines of all devices", () => {
  const plots = plotsOf(
    [
      series({ name: "cuda_util", deviceId: "GPU-0", mean: [1], capacity: 100 }),
      series({ name: "cuda_util", deviceId: "GPU-1", mean: [2], capacity: 100, quality: "ESTIMATED" }),
      series({ mean: [] }),
    ],
    (s) => s.deviceId,
  );
  expect(plots.map((p) => [p.name, p.quality, p.lines.map((l) => l.label)])).toEqual([
    ["cuda_util", "ESTIMATED", ["GPU-0", "GPU-1"]],
  ]);
});

test("nothing is said of a line without values", () => {
  expect(summary({ label: "", at: [1], value: [null], low: [], high: [] })).toBeNull();
});
