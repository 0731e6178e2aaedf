import { expect, it } from "vitest";
import { openTo } from "./group";

it("says to whom a group is open", () => {
  expect(openTo({ active: false, public: true, grants: [1] })).toEqual(["nobody: inactive"]);
  expect(openTo({ active: true, public: true, grants: [1] })).toEqual(["everybody"]);
  expect(openTo({ active: true, public: false, grants: [] })).toEqual(["nobody yet"]);
  expect(openTo({ active: true, public: false, grants: [1, 2] })).toEqual(["{{count}} grants", { count: 2 }]);
});
