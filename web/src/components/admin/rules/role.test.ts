import { expect, it } from "vitest";
import { type Allows, allowsOf, brief, entities, operationsOf, state, tick, ticksOf } from "./role";

const allows: Allows = [
  { entity: "session", operations: ["read", "delete"] },
  { entity: "vfolder", operations: ["read_files"] },
];

it("sends what it read", () => expect(allowsOf(ticksOf(allows))).toEqual(allows));

it("ticks and unticks, and leaves out what allows nothing", () => {
  let ticks = tick(ticksOf(allows), "vfolder", ["read_files"], false);
  ticks = tick(ticks, "agent", ["update", "read"], true);
  expect(allowsOf(ticks)).toEqual([
    { entity: "agent", operations: ["read", "update"] },
    { entity: "session", operations: ["read", "delete"] },
  ]);
});

it("sends the operations of a kind in their order", () =>
  expect(allowsOf(tick({}, "session", ["enter", "read"], true))).toEqual([
    { entity: "session", operations: ["read", "enter"] },
  ]));

it("tells rows and columns that are full from those that are not", () => {
  const ticks = tick({}, "vfolder", operationsOf("vfolder"), true);
  expect(state(ticks, ["vfolder"], operationsOf)).toBe("all");
  expect(state(tick(ticks, "vfolder", ["read"], false), ["vfolder"], operationsOf)).toBe("some");
  expect(state(ticks, ["image"], operationsOf)).toBe("none");
  expect(state(ticks, entities, () => ["read"])).toBe("some");
});

it("says everything for everything that there is", () => {
  expect(brief("image", ["read", "create", "update", "delete"])).toEqual(["everything"]);
  expect(brief("session", ["read", "create", "update", "delete"])).toEqual(["read", "create", "update", "delete"]);
});
