import { describe, expect, it } from "vitest";
import { inWords } from "./rights";

describe("inWords", () => {
  it("returns the permissions of a role as phrases, sessions first", () =>
    expect(
      inWords([
        { entity: "IMAGE", operations: ["UPDATE", "READ"] },
        { entity: "SESSION", operations: ["ENTER", "DELETE"] },
      ]),
    ).toEqual([
      { on: "Sessions", may: ["stop", "connect to them"] },
      { on: "Images", may: ["see", "change"] },
    ]));
  it("leaves out kinds without an operation", () => expect(inWords([{ entity: "USER", operations: [] }])).toEqual([]));
});
