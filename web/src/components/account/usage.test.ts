import { expect, test } from "vitest";
import { csvOf, pivot, rangeOf, type UsageRow } from "./usage";

const row = (label: string, slot: string, slotSeconds: string, cost: string | null = null): UsageRow => ({
  slot,
  slotSeconds,
  cost,
  unpricedSlotSeconds: cost === null ? slotSeconds : "0",
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

test("the costs of a group are added exactly", () => {
  const got = pivot([
    row("ada", "mem", "8", "0.1"),
    row("ada", "cpu", "1", "0.2"),
    row("ben", "cpu", "1", "3"),
    row("ben", "mem", "5"),
  ]);
  expect(got.rows.map((r) => [r.cost, r.unpriced])).toEqual([
    ["0.3", false],
    ["3", true],
  ]);
  expect(pivot([row("ada", "cpu", "1")]).rows[0]?.cost).toBe(null);
});

test("CSV has exact sums and no formulas", () => {
  expect(csvOf([row("=1+1", "cpu", "0.000001"), row('a,"b"', "mem", "3", "0.5")], ["USER"])).toBe(
    'user,user_name,slot,slot_seconds,cost,unpriced_slot_seconds\nid-=1+1,\'=1+1,cpu,0.000001,,0.000001\n"id-a,""b""","a,""b""",mem,3,0.5,0\n',
  );
});

test("periods follow the calendar", () => {
  const now = new Date(2026, 0, 15, 12);
  expect(rangeOf("month", now)).toEqual({ from: new Date(2026, 0, 1), to: now });
  expect(rangeOf("last", now)).toEqual({ from: new Date(2025, 11, 1), to: new Date(2026, 0, 1) });
  expect(rangeOf("7d", now).from).toEqual(new Date(now.getTime() - 7 * 86_400_000));
});
