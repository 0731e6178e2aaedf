import { graphql, type ResultOf } from "../../api/graphql";
import { isCounter } from "../session/series";

export const TimeSeriesQuery = graphql(`
  query TimeSeries($subjects: [ID!]!, $metrics: [String!], $from: Time!, $to: Time, $points: Int) {
    timeSeries(subjects: $subjects, metrics: $metrics, from: $from, to: $to, points: $points) {
      subject name deviceId unit capacity quality step at mean minimum maximum
    }
  }
`);

export type TimeSeries = ResultOf<typeof TimeSeriesQuery>["timeSeries"][number];

/** The ranges of time that can be chosen, in seconds. */
export const ranges = {
  "1 h": 3600,
  "6 h": 21_600,
  "24 h": 86_400,
  "7 d": 604_800,
  "30 d": 2_592_000,
  "1 y": 31_622_400,
} as const;
export type Range = keyof typeof ranges;

/** One line of a plot. A null is a gap. */
export interface Line {
  label: string;
  /** Seconds since 1970. */
  at: number[];
  value: (number | null)[];
  /** Empty if every point is one sample, or if the metric is a counter. */
  low: (number | null)[];
  high: (number | null)[];
}

/** The lines of one metric. */
export interface PlotData {
  name: string;
  unit: string;
  /** Per second, because the metric is a counter. */
  rate: boolean;
  capacity: number;
  quality: TimeSeries["quality"];
  lines: Line[];
}

/** Returns one plot for each metric, with a line for each subject and device. */
export function plotsOf(all: readonly TimeSeries[], label: (s: TimeSeries) => string): PlotData[] {
  const plots = new Map<string, PlotData>();
  for (const s of all) {
    const line = lineOf(s, label(s));
    if (line.at.length === 0) continue;
    const known = plots.get(s.name);
    if (known) {
      known.lines.push(line);
      known.capacity = Math.max(known.capacity, s.capacity);
      if (s.quality !== "MEASURED") known.quality = s.quality;
      continue;
    }
    const rate = isCounter(s.name);
    plots.set(s.name, {
      name: s.name,
      unit: s.unit,
      rate,
      capacity: rate ? 0 : s.capacity,
      quality: s.quality,
      lines: [line],
    });
  }
  return [...plots.values()];
}

/** How many times the usual distance two points must be apart for a gap between them. */
const gap = 2.5;

/** Returns a line with a null wherever samples are missing. */
export function lineOf(s: TimeSeries, label: string): Line {
  const at = s.at.map((text) => Date.parse(text) / 1000);
  const apart = usual(at, s.step);
  const line: Line = { label, at: [], value: [], low: [], high: [] };
  const counter = isCounter(s.name);
  const band = !counter && s.minimum.some((low, i) => low !== s.maximum[i]);
  for (let i = 0; i < at.length; i++) {
    const here = at[i]!;
    const before = at[i - 1];
    const broken = before !== undefined && here - before > gap * apart;
    if (broken) push(line, before + apart, null, null, null, band);
    if (!counter) push(line, here, s.mean[i]!, s.minimum[i]!, s.maximum[i]!, band);
    else if (before !== undefined && !broken) {
      // A counter that decreases was reset.
      push(
        line,
        here,
        Math.max(0, s.maximum[i]! - s.maximum[i - 1]!) / Math.max(0.001, here - before),
        null,
        null,
        false,
      );
    }
  }
  return line;
}

function push(line: Line, at: number, value: number | null, low: number | null, high: number | null, band: boolean) {
  line.at.push(at);
  line.value.push(value);
  if (!band) return;
  line.low.push(low);
  line.high.push(high);
}

/** Returns the usual distance of two points in seconds. */
function usual(at: readonly number[], step: number): number {
  const apart = at.slice(1).map((t, i) => t - at[i]!);
  apart.sort((a, b) => a - b);
  return Math.max(step, apart[Math.floor(apart.length / 2)] ?? step);
}

/** What is said of a line beside its plot. */
export function summary(line: Line) {
  const known = line.value.filter((v) => v !== null);
  if (known.length === 0) return null;
  const highs = line.high.filter((v) => v !== null);
  const sum = known.reduce((a, b) => a + b, 0);
  return { last: known.at(-1)!, mean: sum / known.length, peak: Math.max(...(highs.length > 0 ? highs : known)) };
}
