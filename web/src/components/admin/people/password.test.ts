import { expect, it } from "vitest";
import { makePassword } from "./password";

it("is long enough for the domain, and never the same", () => {
  expect(makePassword()).toHaveLength(20);
  expect(makePassword(64)).toHaveLength(64);
  expect(new Set(Array.from({ length: 100 }, () => makePassword())).size).toBe(100);
});

it("draws from all letters", () => {
  const seen = new Set(makePassword(5000));
  expect(seen.size).toBe(56);
  expect([...seen].some((c) => "0OlI1".includes(c))).toBe(false);
});
