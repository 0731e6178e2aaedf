import { describe, expect, it, vi } from "vitest";
import { type Item, type Target, Uploads } from "./uploads";

const file = (name: string, text = "data") => ({ path: name, file: new File([text], name) });
const names = (n: number) => Array.from({ length: n }, (_, i) => file(`f${i}`));

function rig(options: { ttl?: number; now?: () => number; tickets?: (paths: string[]) => Promise<void> } = {}) {
  const pending = new Map<string, { done: () => void; fail: (e: unknown) => void; progress: (n: number) => void; ticket: string }>();
  const asked: string[][] = [];
  let serial = 0;
  const uploads = new Uploads(
    {
      async tickets(_, files) {
        asked.push(files.map((f) => f.path));
        await options.tickets?.(files.map((f) => f.path));
        const expiresAt = new Date((options.now?.() ?? Date.now()) + (options.ttl ?? 60_000)).toISOString();
        return files.map((f): Target => ({ path: f.path, url: "/u", ticket: `t${++serial}`, expiresAt }));
      },
      send: (item: Item, target, signal, progress) =>
        new Promise<void>((done, fail) => {
          signal.addEventListener("abort", () => fail(new Error("aborted")));
          pending.set(item.path, { done, fail, progress, ticket: target.ticket });
        }),
    },
    options.now,
  );
  const states = () => uploads.list().map((i) => i.state);
  return { uploads, pending, asked, states };
}

describe("Uploads", () => {
  it("sends three at a time and goes on", async () => {
    const { uploads, pending, states } = rig();
    uploads.add("f", names(5));
    await vi.waitFor(() => expect(pending.size).toBe(3));
    expect(states()).toEqual(["sending", "sending", "sending", "waiting", "waiting"]);
    pending.get("f1")!.progress(2);
    expect(uploads.list()[1]!.sent).toBe(2);
    pending.get("f1")!.done();
    await vi.waitFor(() => expect(pending.size).toBe(4));
    expect(uploads.list()[1]).toMatchObject({ state: "done", sent: 4 });
  });

  it("asks for tickets in batches", async () => {
    const { uploads, asked, pending } = rig();
    uploads.add("f", names(130));
    await vi.waitFor(() => expect(pending.size).toBe(3));
    expect(asked.map((a) => a.length)).toEqual([60]);
  });

  it("keeps a failure with its file and tries again with a new ticket", async () => {
    const { uploads, pending, states } = rig();
    uploads.add("f", names(1));
    await vi.waitFor(() => expect(pending.size).toBe(1));
    const first = pending.get("f0")!.ticket;
    pending.get("f0")!.fail({ code: "RESOURCE_EXHAUSTED", message: "quota" });
    await vi.waitFor(() => expect(states()).toEqual(["failed"]));
    expect(uploads.list()[0]!.failure?.code).toBe("RESOURCE_EXHAUSTED");
    uploads.retry(1);
    await vi.waitFor(() => expect(states()).toEqual(["sending"]));
    expect(pending.get("f0")!.ticket).not.toBe(first);
  });

  it("fails all that a refused batch was for", async () => {
    const { uploads, states } = rig({ tickets: () => Promise.reject(new Error("offline")) });
    uploads.add("f", names(2));
    await vi.waitFor(() => expect(states()).toEqual(["failed", "failed"]));
  });

  it("does not begin with a ticket that is about to expire", async () => {
    let now = 0;
    const { uploads, pending, asked } = rig({ now: () => now, ttl: 30_000 });
    uploads.add("f", names(4));
    await vi.waitFor(() => expect(pending.size).toBe(3));
    now = 25_000;
    pending.get("f0")!.done();
    await vi.waitFor(() => expect(pending.has("f3")).toBe(true));
    expect(asked).toEqual([["f0", "f1", "f2", "f3"], ["f3"]]);
  });

  it("stops one without disturbing the others", async () => {
    const { uploads, pending, states } = rig();
    uploads.add("f", names(4));
    await vi.waitFor(() => expect(pending.size).toBe(3));
    uploads.stop(1);
    await vi.waitFor(() => expect(pending.has("f3")).toBe(true));
    expect(states()).toEqual(["stopped", "sending", "sending", "sending"]);
    uploads.clear("f");
    expect(uploads.list()).toHaveLength(3);
  });
});
