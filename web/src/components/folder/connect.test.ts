import { describe, expect, it } from "vitest";
import { commands, inURL, remotePath } from "./connect";
import type { Folder } from "./folder";

const folder = (over: Partial<Folder>) =>
  ({ name: "digits", owner: null, project: null, myShare: null, ...over }) as Folder;

describe("remotePath", () => {
  it.each([
    ["mine", folder({}), "mine/digits"],
    ["project", folder({ project: { id: "p", name: "vision" } }), "projects/vision/digits"],
    ["shared", folder({ owner: { id: "u", email: "al@b.c" } }), "shared/al@b.c/digits"],
    ["shared", folder({ myShare: { inviterEmail: "al@b.c" } as Folder["myShare"] }), "shared/al@b.c/digits"],
    ["shared", folder({}), null],
    ["others", folder({ owner: { id: "u", email: "al@b.c" } }), null],
  ] as const)("%s", (of, f, want) => expect(remotePath(f, of)).toBe(want));
});

it("escapes paths in URLs", () => expect(inURL("mine/a b/<x>#1")).toBe("mine/a%20b/%3Cx%3E%231"));

describe("commands", () => {
  it("are quoted for a shell", () =>
    expect(commands("digits", "my run/$(x)", true).map((c) => c.line)).toEqual([
      "berth folder get 'digits:my run/$(x)'",
      "berth folder put 'digits:my run/$(x)' ./data",
      "berth folder sync ./data 'digits:my run/$(x)'",
    ]));
  it("contain no upload for users who can only read", () =>
    expect(commands("digits", "", false).map((c) => c.line)).toEqual(["berth folder get digits:"]));
});
