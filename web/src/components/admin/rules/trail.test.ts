import { expect, it } from "vitest";
import { anyFailure, exportUrl, filterOf, formatMicroseconds, notExported, whereOf, wrongIn } from "./trail";

const id = "0192f0c1-0000-7000-8000-000000000001";

it("reads the filter from the URL", () => {
  expect(filterOf({ actor: id, action: "", result: 3, request: 123, other: "x", from: " 2026-01-01T10:00 " })).toEqual({
    actor: id,
    result: "3",
    request: "123",
    from: "2026-01-01T10:00",
  });
});

it("converts the filter to a condition", () => {
  expect(whereOf({})).toEqual({});
  expect(whereOf({ actor: id, as: id, action: "createUser", entity: "user", result: "OK", request: "r" })).toEqual({
    actorID: id,
    actedAsID: id,
    action: "createUser",
    entity: "user",
    result: "OK",
    requestID: "r",
  });
  expect(whereOf({ result: anyFailure })).toEqual({ resultNEQ: "OK" });
  expect(whereOf({ from: "2026-01-01T10:00" }).atGTE).toBe(new Date("2026-01-01T10:00").toISOString());
});

it("exports the same rows, or reports the filters that prevent it", () => {
  expect(exportUrl({})).toBe("/export/audit.csv");
  expect(notExported({ from: "2026-01-01T10:00", entity: "user", result: "OK" })).toEqual([]);
  const url = new URL(exportUrl({ from: "2026-01-01T10:00", actor: id, result: "OK" }), "http://b");
  expect(Object.fromEntries(url.searchParams)).toEqual({
    from: new Date("2026-01-01T10:00").toISOString(),
    actor: id,
    result: "OK",
  });
  expect(notExported({ action: "createUser", result: anyFailure })).toEqual(["action", "result"]);
});

it("returns an error for each invalid filter", () => {
  expect(wrongIn({ from: "2026-01-02T00:00", to: "2026-01-01T00:00" })).toHaveProperty("to");
  expect(wrongIn({ from: "soon", actor: "me" })).toEqual({
    from: "Enter a date and a time.",
    actor: "Choose a user from the list.",
  });
  expect(wrongIn({ from: "2026-01-01T00:00", to: "2026-01-02T00:00", as: id })).toEqual({});
});

it("formats a duration with its unit", () =>
  expect([900, 1500, 12_000, 2_340_000].map(formatMicroseconds)).toEqual(["900 µs", "1.5 ms", "12 ms", "2.34 s"]));
