import { describe, expect, it } from "vitest";
import { endsAt } from "./token";

describe("endsAt", () => {
  const now = Date.parse("2031-05-01T12:00:00Z");
  it("adds days to the current time", () => expect(endsAt("7", "", now)).toBe("2031-05-08T12:00:00.000Z"));
  it("is the end of a selected day in local time", () =>
    expect(endsAt("day", "2031-06-30", now)).toBe(new Date(2031, 5, 30, 23, 59, 59).toISOString()));
  it("is undefined until a date is selected", () => {
    expect(endsAt("day", "", now)).toBeUndefined();
    expect(endsAt("day", "2031-02-", now)).toBeUndefined();
  });
  it("is null for a token without expiration", () => expect(endsAt("never", "2031-06-30", now)).toBeNull());
});
