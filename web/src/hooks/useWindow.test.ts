import { describe, expect, it } from "vitest";
import { drawn } from "./useWindow";

describe("of many rows", () => {
  it.each([
    ["the first are drawn at the top", 100_000, 0, { first: 0, last: 40 }],
    ["those in sight in the middle", 100_000, 50_000 * 30, { first: 49_980, last: 50_040 }],
    ["the last at the end", 100_000, 99_980 * 30, { first: 99_960, last: 100_000 }],
    ["all, when they are few", 5, 0, { first: 0, last: 5 }],
    ["none, when there are none", 0, 0, { first: 0, last: 0 }],
    ["those that are left, when others went while one was below", 100, 99_000 * 30, { first: 80, last: 100 }],
  ])("%s", (_, count, top, expected) => expect(drawn(count, 30, top, 600)).toEqual(expected));
});
