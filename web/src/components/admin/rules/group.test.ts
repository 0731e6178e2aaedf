import { expect, it } from "vitest";
import { accessPhrase, reservationPhrase } from "./group";

it("describes who can use a group", () => {
  expect(accessPhrase({ active: false, public: true, grants: [1] })).toEqual(["no one (inactive)"]);
  expect(accessPhrase({ active: true, public: true, grants: [1] })).toEqual(["everyone"]);
  expect(accessPhrase({ active: true, public: false, grants: [] })).toEqual(["no one yet"]);
  expect(accessPhrase({ active: true, public: false, grants: [1, 2] })).toEqual(["{{count}} grants", { count: 2 }]);
});

it("describes when agents are reserved for the head of the queue", () => {
  expect(reservationPhrase(-1)).toEqual(["never"]);
  expect(reservationPhrase(0)).toEqual(["immediately"]);
  expect(reservationPhrase(600)).toEqual(["after {{count}} minutes", { count: 10 }]);
  expect(reservationPhrase(90)).toEqual(["after {{count}} seconds", { count: 90 }]);
});
