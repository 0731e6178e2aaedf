import { describe, expect, it } from "vitest";
import { endsAt } from "./token";

describe("the end of a token", () => {
  const now = Date.parse("2031-05-01T12:00:00Z");
  it("is some days from now", () => expect(endsAt("7", "", now)).toBe("2031-05-08T12:00:00.000Z"));
  it("is the end of a chosen day, where one is", () =>
    expect(endsAt("day", "2031-06-30", now)).toBe(new Date(2031, 5, 30, 23, 59, 59).toISOString()));
  it("is open until a day is chosen", () => {
    expect(endsAt("day", "", now)).toBeUndefined();
    expect(endsAt("day", "2031-02-", now)).toBeUndefined();
  });
  it("never comes", () => expect(endsAt("never", "2031-06-30", now)).toBeNull());
});
