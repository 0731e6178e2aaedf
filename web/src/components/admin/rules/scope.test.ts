import { describe, expect, it } from "vitest";
import { canEnforce, limitOf, limits, textOf } from "./scope";

const [bytes, files] = limits as [(typeof limits)[number], (typeof limits)[number]];

describe("the limit of a scope", () => {
  it.each([
    [bytes, "", null],
    [bytes, " ", null],
    [bytes, "0", 0],
    [bytes, "500g", 500 * 1024 ** 3],
    [bytes, "2 TiB", 2 * 1024 ** 4],
    [bytes, "much", undefined],
    [files, "", null],
    [files, "0", 0],
    [files, "100000", 100_000],
    [files, "1.5", undefined],
    [files, "-1", undefined],
  ])("$field of %s is %s", (limit, text, want) => expect(limitOf(limit, text)).toBe(want));
  it("is formatted so that parsing returns the same number of bytes", () => {
    for (const n of [0, 1, 1025, 1_000_000_007, 5 * 1024 ** 4])
      expect(limitOf(bytes, textOf(bytes, { limitBytes: n, limitInodes: null }))).toBe(n);
    expect(textOf(bytes, { limitBytes: null, limitInodes: 3 })).toBe("");
    expect(textOf(files, { limitBytes: null, limitInodes: 3 })).toBe("3");
    expect(textOf(files, null)).toBe("");
  });
  it("is offered only if the volume can enforce it or has not reported its capabilities", () => {
    expect(canEnforce({ capabilities: ["capacity", "quota-bytes"] }, bytes)).toBe(true);
    expect(canEnforce({ capabilities: ["capacity", "quota-bytes"] }, files)).toBe(false);
    expect(canEnforce({ capabilities: [] }, files)).toBe(true);
  });
});
