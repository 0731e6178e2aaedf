import { describe, expect, it } from "vitest";
import { join } from "../../api/path";
import { badName, chosen, dropped, goodFolderName } from "./dropped";

const asFile = (name: string) => ({
  name,
  isFile: true,
  isDirectory: false,
  file: (ok: (f: File) => void) => ok(new File(["x"], name)),
});
const asDir = (name: string, children: unknown[]) => ({
  name,
  isFile: false,
  isDirectory: true,
  createReader: () => {
    const rounds = [children.slice(0, 1), children.slice(1), []];
    return { readEntries: (ok: (e: unknown[]) => void) => ok(rounds.shift() ?? []) };
  },
});

describe("dropped", () => {
  it("reads directories until their reader is at the end", async () => {
    const tree = asDir("data", [asFile("a.csv"), asDir("deep", [asFile("b.csv")]), asFile("c.csv")]);
    const transfer = {
      items: [tree, asFile("top.txt")].map((entry) => ({ webkitGetAsEntry: () => entry })),
      files: [],
    };
    const found = await dropped(transfer as unknown as DataTransfer);
    expect(found.map((f) => f.path)).toEqual(["data/a.csv", "data/deep/b.csv", "data/c.csv", "top.txt"]);
  });
});

describe("chosen", () => {
  it.each([
    ["", "a", "a"],
    ["d/a", "a", "d/a"],
    ["d/a/b", "a\\b", "d/a\\b"],
  ])("%s", (webkitRelativePath, name, want) =>
    expect(chosen([{ name, webkitRelativePath } as File])[0]!.path).toBe(want),
  );
});

describe("names", () => {
  it.each([
    ["a.txt", null],
    ["..", "Use more than dots in a name."],
    ["a/b", "Use no slashes in a name."],
    [" ", "Enter a name."],
  ])("%s", (name, want) => expect(badName(name)).toBe(want));
  it.each([
    ["train-1", true],
    ["../x", false],
    ["...", false],
    ["", false],
    ["a".repeat(65), false],
  ])("folder %s", (name, want) => expect(goodFolderName(name)).toBe(want));
  it("joins", () => expect([join("", "a"), join("a/b", "c")]).toEqual(["a", "a/b/c"]));
});
