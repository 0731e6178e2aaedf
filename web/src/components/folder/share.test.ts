import { describe, expect, it } from "vitest";
import { addresses, liveShares } from "./share";

describe("addresses", () => {
  it.each([
    ["", []],
    ["a@b.c", ["a@b.c"]],
    ["a@b.c, d@e.f;g@h.i\nA@B.C", ["a@b.c", "d@e.f", "g@h.i"]],
    ["a@b.c d@e.f", ["a@b.c", "d@e.f"]],
    ["Ada Lovelace <ada@x.org>, bob", ["ada@x.org", "bob"]],
  ])("%j", (text, want) => expect(addresses(text)).toEqual(want));
});

it("shows what is over no more, and invitations last", () =>
  expect(
    liveShares([
      { email: "z@x", status: "accepted" },
      { email: "a@x", status: "pending" },
      { email: "b@x", status: "left" },
      { email: "c@x", status: "withdrawn" },
      { email: "d@x", status: "declined" },
      { email: "m@x", status: "accepted" },
    ]).map((s) => s.email),
  ).toEqual(["m@x", "z@x", "a@x"]));
