import { expect, it } from "vitest";
import { type Allows, allowsOf, brief, entities, operationsOf, state, tick, ticksOf } from "./role";

const allows: Allows = [
  { entity: "SESSION", operations: ["READ", "DELETE"] },
  { entity: "VFOLDER", operations: ["READ_FILES"] },
];

it("returns the permissions that it has read", () => expect(allowsOf(ticksOf(allows))).toEqual(allows));

it("selects and clears operations, and leaves out kinds without any", () => {
  let ticks = tick(ticksOf(allows), "VFOLDER", ["READ_FILES"], false);
  ticks = tick(ticks, "AGENT", ["UPDATE", "READ"], true);
  expect(allowsOf(ticks)).toEqual([
    { entity: "AGENT", operations: ["READ", "UPDATE"] },
    { entity: "SESSION", operations: ["READ", "DELETE"] },
  ]);
});

it("sends the operations of a kind in a fixed order", () =>
  expect(allowsOf(tick({}, "SESSION", ["ENTER", "READ"], true))).toEqual([
    { entity: "SESSION", operations: ["READ", "ENTER"] },
  ]));

it("distinguishes complete, partial and empty rows and columns", () => {
  const ticks = tick({}, "VFOLDER", operationsOf("VFOLDER"), true);
  expect(state(ticks, ["VFOLDER"], operationsOf)).toBe("all");
  expect(state(tick(ticks, "VFOLDER", ["READ"], false), ["VFOLDER"], operationsOf)).toBe("some");
  expect(state(ticks, ["IMAGE"], operationsOf)).toBe("none");
  expect(state(ticks, entities, () => ["READ"])).toBe("some");
});

it('shortens all operations of a kind to "everything"', () => {
  expect(brief("IMAGE", ["READ", "CREATE", "UPDATE", "DELETE"])).toEqual(["everything"]);
  expect(brief("SESSION", ["READ", "CREATE", "UPDATE", "DELETE"])).toEqual(["READ", "CREATE", "UPDATE", "DELETE"]);
});
