import { expect, it } from "vitest";
import { type Allows, allowsOf, brief, entities, operations, state, tick, ticksOf } from "./role";

const allows: Allows = [
  { entity: "session", operations: ["read", "delete"] },
  { entity: "vfolder", operations: ["special"] },
];

it("sends what it read", () => expect(allowsOf(ticksOf(allows))).toEqual(allows));

it("ticks and unticks, and leaves out what allows nothing", () => {
  let ticks = tick(ticksOf(allows), "vfolder", ["special"], false);
  ticks = tick(ticks, "agent", ["update", "read"], true);
  expect(allowsOf(ticks)).toEqual([
    { entity: "agent", operations: ["read", "update"] },
    { entity: "session", operations: ["read", "delete"] },
  ]);
});

it("ticks special only where it means something", () => {
  expect(allowsOf(tick({}, "image", operations, true))).toEqual([
    { entity: "image", operations: ["read", "create", "update", "delete"] },
  ]);
  expect(allowsOf(tick({}, "session", operations, true))[0]!.operations).toEqual([
    "read",
    "create",
    "update",
    "delete",
    "special",
  ]);
  expect(allowsOf(tick({}, "vfolder", operations, true))[0]!.operations).toEqual(operations);
});

it("keeps a special that it would not offer until it is taken away", () => {
  const odd: Allows = [{ entity: "image", operations: ["special"] }];
  expect(allowsOf(ticksOf(odd))).toEqual(odd);
  expect(allowsOf(tick(ticksOf(odd), "image", operations, false))).toEqual([]);
});

it("tells rows and columns that are full from those that are not", () => {
  const ticks = tick({}, "vfolder", operations, true);
  expect(state(ticks, ["vfolder"], operations)).toBe("all");
  expect(state(tick(ticks, "vfolder", ["read"], false), ["vfolder"], operations)).toBe("some");
  expect(state(ticks, ["image"], operations)).toBe("none");
  expect(state(ticks, entities, ["read"])).toBe("some");
});

it("says everything for everything that there is", () => {
  expect(brief("image", ["read", "create", "update", "delete"])).toEqual(["everything"]);
  expect(brief("session", ["read", "create", "update", "delete"])).toEqual(["read", "create", "update", "delete"]);
});
