import { describe, expect, it } from "vitest";
import { mountState } from "./mounts";

const mount = { target: "/home/work/digits", readOnly: false, revokedAt: null };
const event = (at: string, code: string, target: string, rest: string) => ({
  at,
  code,
  message: `folder digits is ${rest}: ${target} is so`,
});
const history = [
  event("2026-11-22T10:00:00Z", "folder_read_only", "/home/work/digits", "for its owner to read only"),
  event("2026-11-22T10:05:00Z", "folder_writable", "/home/work/digits", "for its owner to write"),
  event("2026-11-22T10:09:00Z", "folder_read_only", "/home/work/digits-2", "for its owner to read only"),
  { at: "2026-11-22T10:10:00Z", code: "started", message: "/home/work/digits is of no interest here" },
];

describe("a mount", () => {
  it("has its original state without events", () =>
    expect(mountState({ ...mount, readOnly: true }, [])).toEqual({
      kind: "read_only",
      since: null,
      name: null,
      why: null,
    }));
  it("became writable at its own last event, in any order of events", () => {
    const expected = { kind: "writable", since: "2026-11-22T10:05:00Z", name: "digits", why: null };
    expect(mountState(mount, history)).toEqual(expected);
    expect(mountState(mount, [...history].reverse())).toEqual(expected);
  });
  it("ignores events that do not match its current state", () =>
    expect(mountState({ ...mount, readOnly: true }, history).since).toBeNull());
  it.each([
    ["while it ran", "/home/work/digits is empty"],
    ["while it waited", "the session starts without /home/work/digits"],
  ])("was removed %s, with its time, its reason and its name", (_, end) => {
    const told = {
      at: "2026-11-22T10:20:00Z",
      code: "folder_revoked",
      message: `folder digits is in the trash: ${end}`,
    };
    const expected = { kind: "taken", since: "2026-11-22T10:20:00Z", name: "digits", why: "is in the trash" };
    expect(mountState({ ...mount, revokedAt: told.at }, [...history, told])).toEqual(expected);
  });
});
