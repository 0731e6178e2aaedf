import { expect, it } from "vitest";
import { holdText, openTo } from "./group";

it("describes who can use a group", () => {
  expect(openTo({ active: false, public: true, grants: [1] })).toEqual(["no one (inactive)"]);
  expect(openTo({ active: true, public: true, grants: [1] })).toEqual(["everyone"]);
  expect(openTo({ active: true, public: false, grants: [] })).toEqual(["no one yet"]);
  expect(openTo({ active: true, public: false, grants: [1, 2] })).toEqual(["{{count}} grants", { count: 2 }]);
});

it("describes when agents are reserved for the head of the queue", () => {
  expect(holdText(-1)).toEqual(["never"]);
  expect(holdText(0)).toEqual(["immediately"]);
  expect(holdText(600)).toEqual(["after {{count}} minutes", { count: 10 }]);
  expect(holdText(90)).toEqual(["after {{count}} seconds", { count: 90 }]);
});
