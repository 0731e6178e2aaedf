import { graphql, type ResultOf } from "../../api/graphql";
import { harmless } from "../csv";
import { bySlot } from "../format";
import { sumMoney } from "../money";

export const UsageReportQuery = graphql(`
  query UsageReport($input: UsageReportInput!) {
    usageReport(input: $input) { slot slotSeconds cost unpricedSlotSeconds keys { dimension value label } }
  }
`);

export type UsageRow = ResultOf<typeof UsageReportQuery>["usageReport"][number];
export type Dimension = UsageRow["keys"][number]["dimension"];

/** What rows can be grouped by on the page, and the steps of time. */
export const dimensions = [
  "USER",
  "PROJECT",
  "RESOURCE_GROUP",
  "IMAGE",
  "SESSION_TYPE",
  "SESSION",
  "DEPLOYMENT",
  "AGENT",
  "DEVICE",
  "DOMAIN",
] as const satisfies Dimension[];
export const steps = ["HOUR", "DAY", "WEEK", "MONTH"] as const satisfies Dimension[];

/** The periods that can be chosen, by their names in the address of the page. */
export const periods = {
  "7d": "the last 7 days",
  "30d": "the last 30 days",
  month: "this month",
  last: "last month",
  year: "this year",
} as const;
export type Period = keyof typeof periods;

/** Returns when a period begins and ends, by the calendar of the viewer. The end is now if it is not over. */
export function rangeOf(period: Period, now: Date): { from: Date; to: Date } {
  const [year, month] = [now.getFullYear(), now.getMonth()];
  if (period === "month") return { from: new Date(year, month, 1), to: now };
  if (period === "last") return { from: new Date(year, month - 1, 1), to: new Date(year, month, 1) };
  if (period === "year") return { from: new Date(year, 0, 1), to: now };
  return { from: new Date(now.getTime() - (period === "7d" ? 7 : 30) * 86_400_000), to: now };
}

/** One row of the table: what it is about, and the charge of each slot. */
export interface Pivoted {
  keys: { value: string; label: string }[];
  charged: Record<string, string>;
  /** The sum of the costs of the slots; null if nothing has a price. */
  cost: string | null;
  /** Reports whether no price applied to a part of the charges. */
  unpriced: boolean;
}

/** Returns one row for each group, with a column for each slot. */
export function pivot(rows: readonly UsageRow[]): { slots: string[]; rows: Pivoted[] } {
  const found = new Map<string, Pivoted>();
  const slots = new Set<string>();
  for (const r of rows) {
    const key = r.keys.map((k) => k.value).join("\t");
    const row = found.get(key) ?? {
      keys: r.keys.map(({ value, label }) => ({ value, label })),
      charged: {},
      cost: null,
      unpriced: false,
    };
    row.charged[r.slot] = r.slotSeconds;
    if (r.cost !== null) row.cost = sumMoney([row.cost ?? "0", r.cost]);
    row.unpriced ||= r.unpricedSlotSeconds !== "0";
    found.set(key, row);
    slots.add(r.slot);
  }
  return { slots: [...slots].sort(bySlot), rows: [...found.values()] };
}

/** Returns the rows as CSV with exact sums. A spreadsheet takes no cell for a formula. */
export function csvOf(rows: readonly UsageRow[], by: readonly string[]): string {
  const cell = (text: string) => {
    const safe = harmless(text);
    return /[",\n\r]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
  };
  const head = [
    ...by.flatMap((d) => [d.toLowerCase(), `${d.toLowerCase()}_name`]),
    "slot",
    "slot_seconds",
    "cost",
    "unpriced_slot_seconds",
  ];
  const lines = rows.map((r) => [
    ...r.keys.flatMap((k) => [cell(k.value), cell(k.label)]),
    cell(r.slot),
    r.slotSeconds,
    r.cost ?? "",
    r.unpricedSlotSeconds,
  ]);
  return [head, ...lines].map((line) => `${line.join(",")}\n`).join("");
}
