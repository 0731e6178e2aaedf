import { expect, it } from "vitest";
import { makePassword } from "./password";

it("is as long as the domain requires, and different each time", () => {
  expect(makePassword()).toHaveLength(20);
  expect(makePassword(64)).toHaveLength(64);
  expect(new Set(Array.from({ length: 100 }, () => makePassword())).size).toBe(100);
});

it("uses all characters of the alphabet", () => {
  const seen = new Set(makePassword(5000));
  expect(seen.size).toBe(56);
  expect([...seen].some((c) => "0OlI1".includes(c))).toBe(false);
});
