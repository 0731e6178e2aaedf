import { describe, expect, it } from "vitest";
import { type Holder, held, mainSlot, segments } from "./segments";

const holder = (amount: string, more: Partial<Holder> = {}): Holder => ({
  slot: "cuda.shares",
  amount,
  since: "2026-01-01T00:00:00Z",
  mine: true,
  session: { id: amount, name: `s-${amount}` },
  ...more,
});

describe("segments", () => {
  it("stacks fractions from the oldest", () => {
    const parts = segments({
      capacity: { "cuda.shares": "1.000" },
      holders: [holder("0.25", { since: "2026-01-02T00:00:00Z", mine: false }), holder("0.5")],
    });
    expect(parts.map((p) => [p.kind, p.start, p.part])).toEqual([
      ["mine", 0, 0.5],
      ["known", 0.5, 0.25],
    ]);
    expect(held(parts)).toBe(0.75);
  });

  it("counts one session once when two slots describe the same hardware", () => {
    const s = { session: { id: "a", name: "a" } };
    const parts = segments({
      capacity: { "cuda.shares": "1", "cuda.mem": "100" },
      holders: [holder("0.25", s), holder("40", { ...s, slot: "cuda.mem" })],
    });
    expect(parts).toHaveLength(1);
    expect(parts[0]!.part).toBe(0.4);
  });

  it("separates sessions of other users, without their names", () => {
    const parts = segments({
      capacity: { "cuda.device": "1" },
      holders: [holder("1", { slot: "cuda.device", session: null, mine: false })],
    });
    expect(parts).toMatchObject([{ kind: "hidden", part: 1, session: null }]);
  });

  it("never draws more than the device", () => {
    const parts = segments({
      capacity: { "cuda.shares": "1" },
      holders: [holder("0.8"), holder("0.7", { since: "2026-01-02T00:00:00Z" })],
    });
    expect(held(parts)).toBe(1);
  });

  it("ignores a slot the device does not have", () => {
    expect(segments({ capacity: {}, holders: [holder("0.5")] })[0]!.part).toBe(0);
  });
});

describe("mainSlot", () => {
  it.each([
    [{ "cuda.mem": "1", "cuda.shares": "1" }, "cuda.shares"],
    [{ "rocm.mem": "1", "rocm.device": "1" }, "rocm.device"],
    [{ mem: "1" }, "mem"],
    [{}, ""],
  ])("of %o is %s", (capacity, want) => expect(mainSlot(capacity)).toBe(want));
});
