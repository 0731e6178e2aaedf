import { describe, expect, it } from "vitest";
import { permissionPhrases } from "./rights";

describe("permissionPhrases", () => {
  it("returns the permissions of a role as phrases, sessions first", () =>
    expect(
      permissionPhrases([
        { entity: "IMAGE", operations: ["UPDATE", "READ"] },
        { entity: "SESSION", operations: ["ENTER", "DELETE"] },
      ]),
    ).toEqual([
      { on: "Sessions", editable: ["stop", "connect to them"] },
      { on: "Images", editable: ["see", "change"] },
    ]));
  it("leaves out kinds without an operation", () =>
    expect(permissionPhrases([{ entity: "USER", operations: [] }])).toEqual([]));
});
