import { describe, expect, it } from "vitest";
import { inWords } from "./rights";

describe("what a role allows", () => {
  it("is said in words, sessions first", () =>
    expect(
      inWords([
        { entity: "IMAGE", operations: ["UPDATE", "READ"] },
        { entity: "SESSION", operations: ["ENTER", "DELETE"] },
      ]),
    ).toEqual([
      { on: "Sessions", may: ["stop", "connect to them"] },
      { on: "Images", may: ["see", "change"] },
    ]));
  it("leaves out what allows nothing", () => expect(inWords([{ entity: "USER", operations: [] }])).toEqual([]));
});
