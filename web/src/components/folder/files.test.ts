import { describe, expect, it } from "vitest";
import type { FileEntry } from "../../api/files";
import { baseName, dirName } from "../../api/path";
import { asText, inBatches, maxSorted, moveTargets, sortFiles } from "./files";

const entry = (name: string, type: FileEntry["type"] = "FILE"): FileEntry => ({
  name,
  path: name,
  type,
  size: 0,
  modifiedAt: "",
});

describe("sortFiles", () => {
  const files = [entry("b10"), entry("b9"), entry("z", "DIRECTORY")];
  it("shows directories first", () => expect(sortFiles(files, true).map((f) => f.name)).toEqual(["z", "b9", "b10"]));
  it("keeps the server's order of long lists, so that rows do not move", () => {
    const many = [...Array.from({ length: maxSorted }, (_, i) => entry(`a${i}`)), entry("z", "DIRECTORY")];
    expect(sortFiles(many, true).at(-1)?.name).toBe("z");
  });
  it("keeps the server's order of incomplete lists", () =>
    expect(sortFiles(files, false).map((f) => f.name)).toEqual(["b10", "b9", "z"]));
});

it("splits paths", () =>
  expect([baseName("a/b/c"), baseName("c"), dirName("a/b/c"), dirName("c")]).toEqual(["c", "c", "a/b", ""]));

describe("moveTargets", () => {
  it.each([
    [
      ["a/x", "y"],
      "to",
      true,
      [
        { from: "a/x", to: "to/x" },
        { from: "y", to: "to/y" },
      ],
    ],
    [["a/x"], "", true, [{ from: "a/x", to: "x" }]],
    [["a"], "a", true, null],
    [["a"], "a/b", true, null],
    [["a"], "ab", true, [{ from: "a", to: "ab/a" }]],
    [["a/x"], "a", true, null],
    [["a/x"], "a", false, [{ from: "a/x", to: "a/x" }]],
  ])("%j to %j (%s)", (paths, dir, here, want) => expect(moveTargets(paths, dir, here)).toEqual(want));
});

describe("inBatches", () => {
  it.each([
    [[], []],
    [[1], [[1]]],
    [[1, 2], [[1, 2]]],
    [
      [1, 2, 3],
      [[1, 2], [3]],
    ],
  ])("%j", (list, want) => expect(inBatches(list, 2)).toEqual(want));
  it("have at most the number of paths that the server accepts", () =>
    expect(inBatches(Array.from({ length: 2001 }, (_, i) => i)).map((b) => b.length)).toEqual([1000, 1000, 1]));
});

describe("asText", () => {
  it("reads UTF-8", () => expect(asText(new TextEncoder().encode("grüß\n"))).toBe("grüß\n"));
  it("keeps a byte order mark, so that saving changes nothing", () =>
    expect(asText(new Uint8Array([0xef, 0xbb, 0xbf, 65]))).toBe("\ufeffA"));
  it.each([[[65, 0, 66]], [[0xff, 0xfe]]])("%j is not text", (bytes) =>
    expect(asText(new Uint8Array(bytes))).toBeNull(),
  );
});
