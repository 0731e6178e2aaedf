import { expect, test } from "vitest";
import { parseRetention, showRetention } from "./retention";

test("rules of retention are lines of text", () => {
  const rules = [
    { prefix: "", untaggedDays: 7, versions: null },
    { prefix: "users/", untaggedDays: 30, versions: 5 },
    { prefix: "team/", untaggedDays: 1, versions: 0 },
  ];
  expect(showRetention(rules)).toBe("all 7\nusers/ 30 5\nteam/ 1 0");
  expect(parseRetention(showRetention(rules))).toEqual(rules);
  expect(parseRetention("  users/   30\n\n")).toEqual([{ prefix: "users/", untaggedDays: 30, versions: null }]);
  expect(parseRetention("users/ soon")).toEqual([{ prefix: "users/", untaggedDays: 0, versions: null }]);
});
