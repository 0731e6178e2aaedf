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

it("returns no ended shares, and invitations last", () =>
  expect(
    liveShares([
      { email: "z@x", status: "ACCEPTED" },
      { email: "a@x", status: "PENDING" },
      { email: "b@x", status: "LEFT" },
      { email: "c@x", status: "WITHDRAWN" },
      { email: "d@x", status: "DECLINED" },
      { email: "m@x", status: "ACCEPTED" },
    ]).map((s) => s.email),
  ).toEqual(["m@x", "z@x", "a@x"]));
