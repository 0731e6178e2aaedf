import { expect, test } from "vitest";
import { csvOf, pivot, rangeOf, type UsageRow } from "./usage";

const row = (label: string, slot: string, slotSeconds: string): UsageRow => ({
  slot,
  slotSeconds,
  keys: [{ dimension: "USER", value: `id-${label}`, label }],
});

test("each group is one row with a column for each slot", () => {
  const got = pivot([row("ada", "mem", "8"), row("ada", "cpu", "1.25"), row("ben", "cuda.shares", "2")]);
  expect(got.slots[0]).toBe("cpu");
  expect(got.rows.map((r) => [r.keys[0]?.label, r.charged])).toEqual([
    ["ada", { mem: "8", cpu: "1.25" }],
    ["ben", { "cuda.shares": "2" }],
  ]);
});

test("CSV has exact sums and no formulas", () => {
  expect(csvOf([row("=1+1", "cpu", "0.000001"), row('a,"b"', "mem", "3")], ["USER"])).toBe(
    'user,user_name,slot,slot_seconds\nid-=1+1,\'=1+1,cpu,0.000001\n"id-a,""b""","a,""b""",mem,3\n',
  );
});

test("periods follow the calendar", () => {
  const now = new Date(2026, 0, 15, 12);
  expect(rangeOf("month", now)).toEqual({ from: new Date(2026, 0, 1), to: now });
  expect(rangeOf("last", now)).toEqual({ from: new Date(2025, 11, 1), to: new Date(2026, 0, 1) });
  expect(rangeOf("7d", now).from).toEqual(new Date(now.getTime() - 7 * 86_400_000));
});
