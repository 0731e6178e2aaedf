import { describe, expect, it, vi } from "vitest";
import { full, type Kept, type Sendable, type Target, Uploads } from "./uploads";

const file = (name: string, text = "data") => ({ path: name, file: new File([text], name) });
const names = (n: number) => Array.from({ length: n }, (_, i) => file(`f${i}`));

function rig(
  options: { kept?: Kept[]; ttl?: number; now?: () => number; tickets?: (paths: string[]) => Promise<void> } = {},
) {
  const pending = new Map<
    string,
    { done: () => void; fail: (e: unknown) => void; progress: (n: number) => void; ticket: string }
  >();
  const asked: string[][] = [];
  const forgotten: string[] = [];
  let saved: string[] = [];
  let serial = 0;
  const uploads = new Uploads(
    {
      async tickets(_, files) {
        asked.push(files.map((f) => f.path));
        await options.tickets?.(files.map((f) => f.path));
        const expiresAt = new Date((options.now?.() ?? Date.now()) + (options.ttl ?? 60_000)).toISOString();
        return files.map((f): Target => ({ path: f.path, url: "/u", ticket: `t${++serial}`, expiresAt }));
      },
      send: (item: Sendable, target, signal, progress) =>
        new Promise<void>((done, fail) => {
          signal.addEventListener("abort", () => fail(new Error(String(signal.reason))));
          pending.set(item.path, { done, fail, progress, ticket: target.ticket });
        }),
      forget: (item) => void forgotten.push(item.path),
    },
    options.now,
    {
      load: () => options.kept ?? [],
      save: (items) => {
        saved = items.map((i) => i.path);
      },
    },
  );
  const states = () => uploads.list().map((i) => i.state);
  return { uploads, pending, asked, states, forgotten, saved: () => saved };
}

describe("Uploads", () => {
  it("uploads four files at a time", async () => {
    const { uploads, pending, states } = rig();
    uploads.add("f", names(6));
    await vi.waitFor(() => expect(pending.size).toBe(4));
    expect(states()).toEqual(["sending", "sending", "sending", "sending", "waiting", "waiting"]);
    pending.get("f1")!.progress(2);
    expect(uploads.list()[1]!.sent).toBe(2);
    pending.get("f1")!.done();
    await vi.waitFor(() => expect(pending.size).toBe(5));
    expect(uploads.list()[1]).toMatchObject({ state: "done", sent: 4 });
  });

  it("requests tickets in batches", async () => {
    const { uploads, asked, pending } = rig();
    uploads.add("f", names(450));
    await vi.waitFor(() => expect(pending.size).toBe(4));
    expect(asked.map((a) => a.length)).toEqual([200]);
  });

  it("keeps the failure of a file, and retries with a new ticket", async () => {
    const { uploads, pending, states } = rig();
    uploads.add("f", names(1));
    await vi.waitFor(() => expect(pending.size).toBe(1));
    const first = pending.get("f0")!.ticket;
    pending.get("f0")!.fail({ code: "PERMISSION_DENIED", message: "no" });
    await vi.waitFor(() => expect(states()).toEqual(["failed"]));
    expect(uploads.list()[0]!.failure?.code).toBe("PERMISSION_DENIED");
    uploads.resume(1);
    await vi.waitFor(() => expect(states()).toEqual(["sending"]));
    expect(pending.get("f0")!.ticket).not.toBe(first);
  });

  it("fails all files of a batch whose tickets the server refused", async () => {
    const { uploads, states } = rig({ tickets: () => Promise.reject({ code: "NOT_FOUND", message: "no folder" }) });
    uploads.add("f", names(2));
    await vi.waitFor(() => expect(states()).toEqual(["failed", "failed"]));
  });

  it("does not use a ticket that is about to expire", async () => {
    let now = 0;
    const { uploads, pending, asked } = rig({ now: () => now, ttl: 30_000 });
    uploads.add("f", names(5));
    await vi.waitFor(() => expect(pending.size).toBe(4));
    now = 25_000;
    pending.get("f0")!.done();
    await vi.waitFor(() => expect(pending.has("f4")).toBe(true));
    expect(asked).toEqual([["f0", "f1", "f2", "f3", "f4"], ["f4"]]);
  });

  it("pauses and resumes one file without affecting the others", async () => {
    const { uploads, pending, states } = rig();
    uploads.add("f", names(5));
    await vi.waitFor(() => expect(pending.size).toBe(4));
    uploads.pause(1);
    await vi.waitFor(() => expect(pending.has("f4")).toBe(true));
    expect(states()).toEqual(["paused", "sending", "sending", "sending", "sending"]);
    pending.get("f1")!.done();
    uploads.resume(1);
    await vi.waitFor(() => expect(states()).toEqual(["sending", "done", "sending", "sending", "sending"]));
    uploads.clear();
    expect(uploads.list()).toHaveLength(4);
  });

  it("pauses, resumes and cancels all files", async () => {
    const { uploads, pending, states, forgotten, saved } = rig();
    uploads.add("f", names(6));
    await vi.waitFor(() => expect(pending.size).toBe(4));
    pending.get("f0")!.done();
    await vi.waitFor(() => expect(pending.size).toBe(5));
    uploads.pause();
    expect(states()).toEqual(["done", "paused", "paused", "paused", "paused", "paused"]);
    uploads.resume();
    await vi.waitFor(() => expect(states().filter((s) => s === "sending")).toHaveLength(4));
    uploads.cancel();
    expect(states()).toEqual(["done"]);
    expect(forgotten).toEqual(["f1", "f2", "f3", "f4", "f5"]);
    expect(saved()).toEqual([]);
  });

  it.each(["RESOURCE_EXHAUSTED", "HTTP 507"])(
    "pauses the other files for a full folder (%s) until they are resumed",
    async (code) => {
      const { uploads, pending, states } = rig();
      uploads.add("f", names(6));
      await vi.waitFor(() => expect(pending.size).toBe(4));
      pending.get("f0")!.fail({ code, message: "no room" });
      await vi.waitFor(() => expect(states()).toEqual(["failed", "sending", "sending", "sending", "paused", "paused"]));
      expect(full(uploads.list()[0]!.failure!)).toBe(true);
      uploads.resume();
      await vi.waitFor(() => expect(states()[0]).toBe("sending"));
    },
  );

  it("waits after a lost connection, and resumes after a reconnection", async () => {
    let cut = true;
    const { uploads, pending, states } = rig({
      tickets: () => (cut ? Promise.reject(new Error("offline")) : Promise.resolve()),
    });
    uploads.add("f", names(2));
    await vi.waitFor(() => expect(uploads.retryTime()).not.toBeNull());
    expect(states()).toEqual(["waiting", "waiting"]);
    cut = false;
    uploads.reconnect();
    await vi.waitFor(() => expect(states()).toEqual(["sending", "sending"]));
    pending.get("f0")!.fail(new Error("offline"));
    await vi.waitFor(() => expect(states()).toEqual(["waiting", "sending"]));
    expect(uploads.retryTime()).not.toBeNull();
  });

  describe("after a reload", () => {
    const old = (path: string, more: Partial<Kept> = {}): Kept => ({
      folder: "f",
      folderName: "F",
      path,
      size: 4,
      modified: 7,
      sent: 2,
      ...more,
    });
    const again = (path: string, name = path.split("/").at(-1)!) => ({
      path,
      file: new File(["data"], name, { lastModified: 7 }),
    });

    it("asks for the files, and resumes those that are selected again", async () => {
      const { uploads, states } = rig({ kept: [old("dir/a"), old("dir/b"), old("c", { size: 5 })] });
      expect(states()).toEqual(["missing", "missing", "missing"]);
      expect(uploads.active()).toBe(false);
      expect(uploads.attachFiles([again("a"), again("dir/b"), again("c"), again("x")])).toBe(2);
      await vi.waitFor(() => expect(states()).toEqual(["sending", "sending", "missing"]));
      expect(uploads.list()[0]!.sent).toBe(2);
    });

    it("recognizes a name with a backslash in a selected directory", async () => {
      const { uploads, states } = rig({ kept: [old("dir/a\\b")] });
      expect(uploads.attachFiles([again("dir/a/b")])).toBe(0);
      await vi.waitFor(() => expect(states()).toEqual(["sending"]));
    });

    it("recognizes missing files that are dropped again", async () => {
      const { uploads, states } = rig({ kept: [old("dir/a")] });
      uploads.add("f", [again("dir/a"), again("dir/n")]);
      await vi.waitFor(() => expect(states()).toEqual(["sending", "sending"]));
      expect(uploads.list()).toHaveLength(2);
    });

    it("recognizes a renamed upload by the name of its file", async () => {
      const { uploads, states } = rig({ kept: [old("dir/a (2)", { from: "dir/a" })] });
      expect(uploads.attachFiles([again("a (2)")])).toBe(1);
      expect(uploads.attachFiles([again("dir/a")])).toBe(0);
      await vi.waitFor(() => expect(states()).toEqual(["sending"]));
      expect(uploads.list()[0]).toMatchObject({ path: "dir/a (2)", sent: 2 });
    });
  });

  it("retries the failed upload of a file that is dropped again", async () => {
    const { uploads, pending, states } = rig();
    uploads.add("f", names(2));
    await vi.waitFor(() => expect(pending.size).toBe(2));
    pending.get("f0")!.fail({ code: "PERMISSION_DENIED", message: "no" });
    await vi.waitFor(() => expect(states()).toEqual(["failed", "sending"]));
    uploads.add("f", names(3));
    await vi.waitFor(() => expect(states()).toEqual(["sending", "sending", "sending"]));
    expect(uploads.list()[0]!.failure).toBeUndefined();
  });
});
