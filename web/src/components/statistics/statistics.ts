import { graphql, type ResultOf } from "../../api/graphql";
import type { Line, PlotData } from "../history/history";

export const WaitReportQuery = graphql(`
  query WaitReport($input: WaitReportInput!) {
    waitReport(input: $input) { count p50 p90 p99 max keys { dimension value label } }
  }
`);
export const CapacityReportQuery = graphql(`
  query CapacityReport($input: CapacityReportInput!) {
    capacityReport(input: $input) {
      since
      rows { slot capacity used idle unmeasured promised unallocated outOfService beyond keys { dimension value label } }
    }
  }
`);
export const WasteQuery = graphql(`
  query Waste($input: WasteInput!) {
    waste(input: $input) { session sessionName user userEmail agent agentName slot quality numbers { name value unit } }
  }
`);

export type WaitRow = ResultOf<typeof WaitReportQuery>["waitReport"][number];
export type WaitDimension = WaitRow["keys"][number]["dimension"];
export type CapacityRow = ResultOf<typeof CapacityReportQuery>["capacityReport"]["rows"][number];
export type WasteRow = ResultOf<typeof WasteQuery>["waste"][number];

/** What waits can be grouped by on the page. */
export const dimensions = [
  "REASON",
  "RESOURCE_GROUP",
  "IMAGE",
  "PROJECT",
  "USER",
  "AGENT",
  "PATH",
  "SESSION_TYPE",
] as const satisfies WaitDimension[];

/** The parts of the capacity from the bottom of the stack to its top. */
export const parts = ["used", "idle", "unmeasured", "promised", "unallocated", "outOfService"] as const;
export type Part = (typeof parts)[number];

/** Returns the range of the same length that ends where a range begins. */
export function before({ from, to }: { from: Date; to: Date }): { from: Date; to: Date } {
  return { from: new Date(2 * from.getTime() - to.getTime()), to: from };
}

/** Returns the part of an exact decimal in percent, which is 0 of nothing. */
export function percent(part: string, whole: string): number {
  const all = Number(whole);
  return all > 0 ? (100 * Number(part)) / all : 0;
}

const secondsOf = (value: string) => Date.parse(value) / 1000;

/** Returns the percentiles of waits per step of time as a plot. */
export function waitPlot(rows: readonly WaitRow[], labels: Record<"p50" | "p90", string>): PlotData {
  const timed = rows
    .map((r) => ({ at: secondsOf(r.keys[0]?.value ?? ""), r }))
    .filter(({ at }) => Number.isFinite(at))
    .sort((a, b) => a.at - b.at);
  const line = (which: "p50" | "p90"): Line => ({
    label: labels[which],
    at: timed.map(({ at }) => at),
    value: timed.map(({ r }) => r[which] ?? null),
    low: [],
    high: [],
  });
  return {
    name: "wait",
    unit: "s",
    rate: false,
    capacity: 0,
    quality: "MEASURED",
    lines: [line("p50"), line("p90")],
  };
}

/** Returns the parts of the capacity of one slot per step of time, one above the other. */
export function capacityPlot(rows: readonly CapacityRow[], slot: string, labels: Record<Part, string>): PlotData {
  const timed = rows
    .filter((r) => r.slot === slot)
    .map((r) => ({ at: secondsOf(r.keys[0]?.value ?? ""), r }))
    .filter(({ at }) => Number.isFinite(at))
    .sort((a, b) => a.at - b.at);
  const below = timed.map(() => 0);
  const lines = parts.map((part): Line => {
    const low = [...below];
    timed.forEach(({ r }, i) => {
      below[i] = low[i]! + percent(r[part], r.capacity);
    });
    return { label: labels[part], at: timed.map(({ at }) => at), value: [...below], low, high: [...below] };
  });
  return { name: slot, unit: "percent", rate: false, capacity: 100, quality: "MEASURED", lines };
}
