import { describe, expect, it, vi } from "vitest";
import { type Entry, freePath, Incoming } from "./incoming";
import { type Kept, Uploads } from "./uploads";

const chosen = (path: string, text = "data", lastModified = 7) => ({
  path,
  file: new File([text], path.split("/").at(-1)!, { lastModified }),
});
const entry = (name: string, more: Partial<Entry> = {}): Entry => ({
  name,
  type: "FILE",
  size: 99,
  modifiedAt: "2026-11-22T10:00:00Z",
  ...more,
});
const directory = (name: string) => entry(name, { type: "DIRECTORY", size: 0 });

/**
 * Returns a folder with these directories. Nothing is uploaded, so that a test can read the paths of the queued files.
 */
function rig(tree: Record<string, Entry[]> = {}, kept: Kept[] = []) {
  const looked: string[] = [];
  const uploads = new Uploads(
    { tickets: () => new Promise(() => undefined), send: () => new Promise(() => undefined), forget: () => undefined },
    Date.now,
    { load: () => kept, save: () => undefined },
  );
  const incoming = new Incoming(uploads, async (_, at) => {
    looked.push(at);
    return tree[at] ?? [];
  });
  return { incoming, uploads, looked, paths: () => uploads.list().map((i) => i.path) };
}

describe("Incoming", () => {
  it("uploads files with free names immediately", async () => {
    const { incoming, paths } = rig({ "": [entry("other")] });
    expect(await incoming.send("f", "", [chosen("a"), chosen("dir/b")])).toBe(0);
    expect(incoming.question()).toBeNull();
    expect(paths()).toEqual(["a", "dir/b"]);
  });

  it("waits for an answer if a name is taken", async () => {
    const { incoming, paths } = rig({ data: [entry("a")] });
    await incoming.send("f", "data", [chosen("a"), chosen("b")]);
    expect(paths()).toEqual([]);
    expect(incoming.question()).toMatchObject({ count: 2, clashes: [{ path: "data/a", existing: { size: 99 } }] });
    incoming.answer("replace", true);
    expect(incoming.question()).toBeNull();
    expect(paths()).toEqual(["data/b", "data/a"]);
  });

  it("asks once for a thousand files, and reads only directories that exist", async () => {
    const tree = {
      "": [directory("set"), directory("others")],
      set: [directory("d0"), directory("d1"), directory("far")],
      "set/d0": [entry("n0"), entry("n1")],
      "set/d1": [entry("n2")],
    };
    const { incoming, looked, paths } = rig(tree);
    const files = Array.from({ length: 1000 }, (_, i) => chosen(`set/d${i % 10}/n${Math.floor(i / 10)}`));
    await incoming.send("f", "", files);
    expect(looked.sort()).toEqual(["", "set", "set/d0", "set/d1"]);
    expect(
      incoming
        .question()!
        .clashes.map((c) => c.path)
        .sort(),
    ).toEqual(["set/d0/n0", "set/d0/n1", "set/d1/n2"]);
    incoming.answer("skip", true);
    expect(incoming.question()).toBeNull();
    expect(paths()).toHaveLength(997);
  });

  it("asks for each file until one answer applies to the rest", async () => {
    const { incoming, paths } = rig({ "": ["a", "b", "c", "d"].map((n) => entry(n)) });
    await incoming.send(
      "f",
      "",
      ["a", "b", "c", "d"].map((n) => chosen(n)),
    );
    incoming.answer("skip", false);
    incoming.answer("both", false);
    expect(paths()).toEqual([]);
    expect(incoming.question()!.clashes.map((c) => c.path)).toEqual(["c", "d"]);
    incoming.answer("replace", true);
    expect(paths()).toEqual(["b (2)", "c", "d"]);
  });

  it("keeps both files under a name that no existing or new file has", async () => {
    const { incoming, uploads } = rig({ "": [entry("a.txt"), entry("a (2).txt")] });
    await incoming.send("f", "", [chosen("a.txt"), chosen("a (3).txt")]);
    incoming.answer("both", true);
    expect(uploads.list().map(({ path, from }) => [path, from])).toEqual([
      ["a (3).txt", undefined],
      ["a (4).txt", "a.txt"],
    ]);
  });

  it("uploads nothing after the question is cancelled", async () => {
    const { incoming, paths } = rig({ "": [entry("a")] });
    await incoming.send("f", "", [chosen("a"), chosen("b")]);
    incoming.cancel();
    expect(incoming.question()).toBeNull();
    expect(paths()).toEqual([]);
  });

  it("does not upload files that exist unchanged", async () => {
    const { incoming, paths } = rig({
      "": [
        entry("a", { size: 4, modifiedAt: new Date(7).toISOString() }),
        entry("b", { size: 4, modifiedAt: new Date(8).toISOString() }),
      ],
    });
    expect(await incoming.send("f", "", [chosen("a"), chosen("c")])).toBe(1);
    expect(paths()).toEqual(["c"]);
    expect(await incoming.send("f", "", [chosen("a"), chosen("b"), chosen("d")])).toBe(0);
    expect(incoming.question()).toMatchObject({ count: 3, unchanged: 1, clashes: [{ path: "b" }] });
    incoming.answer("skip", true);
    expect(paths()).toEqual(["c", "d"]);
  });

  it("resumes after a reload with the previous answer", async () => {
    const kept: Kept = {
      folder: "f",
      folderName: "F",
      path: "dir/a (2)",
      from: "dir/a",
      size: 4,
      modified: 7,
      sent: 2,
    };
    const { incoming, uploads } = rig(
      { "": [directory("dir")], dir: [entry("a"), entry("b", { size: 4, modifiedAt: new Date(7).toISOString() })] },
      [kept],
    );
    expect(await incoming.send("f", "", [chosen("dir/a"), chosen("dir/b")])).toBe(1);
    expect(incoming.question()).toBeNull();
    expect(uploads.list()).toMatchObject([{ path: "dir/a (2)", sent: 2, state: "waiting" }]);
  });

  it("asks the questions of two uploads one after the other", async () => {
    const { incoming, paths } = rig({ "": [entry("a")], d: [entry("b")] });
    const listener = vi.fn();
    incoming.subscribe(listener);
    await incoming.send("f", "", [chosen("a")]);
    await incoming.send("f", "d", [chosen("b")]);
    incoming.answer("replace", true);
    expect(incoming.question()!.clashes.map((c) => c.path)).toEqual(["d/b"]);
    incoming.answer("replace", true);
    expect(paths()).toEqual(["a", "d/b"]);
    expect(listener).toHaveBeenCalledTimes(4);
  });

  it("uploads nothing if the folder cannot be read", async () => {
    const uploads = new Uploads({
      tickets: () => new Promise(() => undefined),
      send: () => new Promise(() => undefined),
      forget: () => undefined,
    });
    const incoming = new Incoming(uploads, () => Promise.reject({ code: "PERMISSION_DENIED", message: "no" }));
    await expect(incoming.send("f", "", [chosen("a")])).rejects.toMatchObject({ code: "PERMISSION_DENIED" });
    expect(uploads.list()).toEqual([]);
  });
});

describe("freePath", () => {
  it.each([
    ["a.txt", ["a.txt"], "a (2).txt"],
    ["d/a.tar.gz", ["d/a.tar (2).gz"], "d/a.tar (3).gz"],
    [".env", [], ".env (2)"],
    ["v1.2/README", [], "v1.2/README (2)"],
  ])("for %s", (path, used, free) => expect(freePath(path, new Set(used))).toBe(free));
});
