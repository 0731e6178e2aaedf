import { describe, expect, it } from "vitest";
import { accessKind, type Folder, filled, scopesOf } from "./folder";

const folder = (over: Partial<Folder>, scope = "s"): Folder =>
  ({
    id: scope + Math.random(),
    owner: null,
    project: null,
    myShare: null,
    quotaScope: { id: scope, volume: { id: "v", name: `volume-${scope}` } },
    ...over,
  }) as Folder;
const share = (status: string) => ({ status }) as Folder["myShare"];

describe("accessKind", () => {
  it.each([
    ["mine", folder({ owner: { id: "me", email: "" } })],
    ["project", folder({ project: { id: "p", name: "p" }, myShare: share("ACCEPTED") })],
    ["shared", folder({ owner: { id: "you", email: "" }, myShare: share("ACCEPTED") })],
    ["others", folder({ owner: { id: "you", email: "" } })],
    ["others", folder({ owner: { id: "you", email: "" }, myShare: share("LEFT") })],
  ] as const)("%s", (want, f) => expect(accessKind(f, "me")).toBe(want));
});

it("returns each scope once, the viewer's own first", () => {
  const project = { id: "p", name: "vision" };
  expect(scopesOf([folder({ project }, "b"), folder({}, "a"), folder({}, "a")]).map((s) => [s.id, s.project])).toEqual([
    ["a", null],
    ["b", "vision"],
  ]);
});

describe("filled", () => {
  it.each([
    [5, 10, 0.5],
    [20, 10, 1],
    [null, 10, 0],
    [5, null, 0],
    [0, 0, 1],
  ])("%s of %s", (used, limit, want) => expect(filled(used, limit)).toBe(want));
});
