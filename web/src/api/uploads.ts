import type { Failure } from "./errors";

export interface Target {
  path: string;
  url: string;
  ticket: string;
  expiresAt: string;
}

/** What is remembered of an upload when the page is loaded again. */
export interface Kept {
  folder: string;
  folderName: string;
  path: string;
  /** The path that it was chosen by, when it goes by another one. */
  from?: string;
  size: number;
  modified: number;
  sent: number;
}

export interface Item extends Kept {
  id: number;
  /** Null after the page was loaded again: a browser gives files only to whom a person chooses them for. */
  file: File | null;
  state: "waiting" | "sending" | "done" | "failed" | "paused" | "missing";
  failure?: Failure;
}

export type Sendable = Item & { file: File };

/** How files travel; the page's own is in transfer.ts. */
export interface Transport {
  tickets(folder: string, files: { path: string; size: number }[]): Promise<Target[]>;
  /** Aborted with the reason "cancel", what has arrived is thrown away. */
  send(item: Sendable, target: Target, signal: AbortSignal, progress: (sent: number) => void): Promise<void>;
  /** It is not gone on with. */
  forget(item: Kept): void;
}

/** Where unfinished uploads are written down. */
export interface Memory {
  load(): Kept[];
  save(items: Kept[]): void;
}

/** At once. More would only share the same wire. */
const lanes = 4;
/** Tickets are asked for in batches, but not far ahead: they expire. The server gives at most 1000. */
const batch = 200;
/** A ticket is not begun with when so little of its time is left. */
const margin = 10_000;
/** How long a lost connection is waited for at most, from one try to the next. */
const longest = 30_000;

const toFailure = (error: unknown): Failure =>
  typeof error === "object" && error !== null && "code" in error && "message" in error
    ? (error as Failure)
    : { code: "UNAVAILABLE", message: error instanceof Error ? error.message : String(error) };

/** A path as Chromium tells it of a chosen folder: a backslash in a name looks like a directory there. */
const told = (path: string) => path.replaceAll("\\", "/");

const source = (i: Kept) => i.from ?? i.path;
const open = (i: Item) => i.state !== "done";
/** The quota or the disk is full: what comes after would fail as well. */
export const full = (f: Failure) => f.code === "RESOURCE_EXHAUSTED" || f.code === "HTTP 507";

/** Sends files a few at a time; outlives the page that it was started from. */
export class Uploads {
  private items: Item[];
  private targets = new Map<number, Target>();
  private running = new Map<number, AbortController>();
  private asking = false;
  private last = 0;
  private listeners = new Set<() => void>();
  private lost = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** When the connection is tried again; null while it is there. */
  private again: number | null = null;

  constructor(
    private transport: Transport,
    private now: () => number = Date.now,
    private memory?: Memory,
  ) {
    this.items = (memory?.load() ?? []).map((k) => ({ ...k, id: ++this.last, file: null, state: "missing" }));
  }

  list = () => this.items;
  waitsUntil = () => this.again;

  subscribe = (tell: () => void) => {
    this.listeners.add(tell);
    return () => void this.listeners.delete(tell);
  };

  active = () => this.items.some((i) => i.state === "waiting" || i.state === "sending");

  /** What is on its way into the folder, or was when the page was closed, by the paths that it was chosen by. */
  begun = (folder: string): ReadonlyMap<string, Item> =>
    new Map(this.items.filter((i) => open(i) && i.folder === folder).map((i) => [source(i), i]));

  /** Files that stopped on their way, as when the page was loaded again, go on; those under way are not sent twice. */
  add(folder: string, files: { path: string; file: File; from?: string }[], folderName = "") {
    const begun = this.begun(folder);
    const found = new Map<number, File>();
    const more: Item[] = [];
    for (const { path, file, from } of files) {
      const old = begun.get(from ?? path);
      if (!old)
        more.push({
          id: ++this.last,
          folder,
          folderName,
          path,
          from,
          file,
          size: file.size,
          modified: file.lastModified,
          sent: 0,
          state: "waiting",
        });
      else if (old.state !== "sending") found.set(old.id, file);
    }
    this.set([...this.items.map((i) => this.given(i, found.get(i.id))), ...more]);
    this.pump();
  }

  /** Gives files chosen again to the uploads that miss them; tells how many there were none for. */
  giveBack(files: { path: string; file: File }[]): number {
    const missing = this.items.filter((i) => i.state === "missing");
    const found = new Map<number, File>();
    for (const { path, file } of files) {
      const item = missing.find(
        (i) =>
          !found.has(i.id) &&
          i.size === file.size &&
          i.modified === file.lastModified &&
          (told(source(i)) === told(path) || told(source(i)).endsWith(`/${told(path)}`)),
      );
      if (item) found.set(item.id, file);
    }
    this.set(this.items.map((i) => this.given(i, found.get(i.id))));
    this.pump();
    return files.length - found.size;
  }

  pause(id?: number) {
    this.each(id, ["waiting", "sending"], (i) => {
      this.running.get(i.id)?.abort("pause");
      return { ...i, state: "paused" };
    });
  }

  resume(id?: number) {
    this.each(id, ["paused", "failed"], (i) => ({ ...i, state: "waiting", failure: undefined }));
    this.reconnect();
  }

  /** Takes off the list what is not over, and throws away what has arrived of it. */
  cancel(id?: number) {
    for (const i of this.items) {
      if (!open(i) || (id !== undefined && i.id !== id)) continue;
      this.running.get(i.id)?.abort("cancel");
      this.targets.delete(i.id);
      this.transport.forget(i);
    }
    this.set(this.items.filter((i) => !open(i) || (id !== undefined && i.id !== id)));
    this.pump();
  }

  /** Takes what is over off the list. */
  clear() {
    this.set(this.items.filter(open));
  }

  /** The connection may be back. */
  reconnect() {
    clearTimeout(this.timer);
    this.again = null;
    this.pump();
  }

  private given(item: Item, file: File | undefined): Item {
    if (!file) return item;
    const same = file.size === item.size && file.lastModified === item.modified;
    if (!same) this.targets.delete(item.id); // a ticket is for one size
    return {
      ...item,
      file,
      size: file.size,
      modified: file.lastModified,
      sent: same ? item.sent : 0,
      state: "waiting",
      failure: undefined,
    };
  }

  private each(id: number | undefined, states: Item["state"][], change: (item: Item) => Item) {
    this.set(this.items.map((i) => ((id === undefined || i.id === id) && states.includes(i.state) ? change(i) : i)));
    this.pump();
  }

  private set(items: Item[]) {
    this.items = items;
    for (const tell of this.listeners) tell();
    this.memory?.save(items.filter(open));
  }

  private change(id: number, more: Partial<Item>) {
    this.set(this.items.map((i) => (i.id === id ? { ...i, ...more } : i)));
  }

  private fresh(id: number): Target | undefined {
    const target = this.targets.get(id);
    if (!target || Date.parse(target.expiresAt) - this.now() > margin) return target;
    this.targets.delete(id);
    return undefined;
  }

  private pump() {
    while (this.again === null && this.running.size < lanes) {
      const next = this.items.find(
        (i): i is Sendable => i.state === "waiting" && i.file !== null && !this.running.has(i.id),
      );
      if (!next) return;
      const target = this.fresh(next.id);
      if (!target) {
        void this.ask(next.folder);
        return;
      }
      void this.send(next, target);
    }
  }

  private async ask(folder: string) {
    if (this.asking) return;
    this.asking = true;
    const some = this.items
      .filter((i) => i.folder === folder && i.state === "waiting" && !this.fresh(i.id))
      .slice(0, batch);
    try {
      const targets = await this.transport.tickets(
        folder,
        some.map((i) => ({ path: i.path, size: i.size })),
      );
      this.lost = 0;
      const byPath = new Map(targets.map((t) => [t.path, t]));
      some.forEach((item, n) => {
        const target = byPath.get(item.path) ?? targets[n];
        if (target) this.targets.set(item.id, target);
        else
          this.change(item.id, {
            state: "failed",
            failure: { code: "INTERNAL", message: "the server returned no ticket for this file" },
          });
      });
    } catch (error) {
      this.failed(some, toFailure(error));
    }
    this.asking = false;
    this.pump();
  }

  private async send(item: Sendable, target: Target) {
    const control = new AbortController();
    this.running.set(item.id, control);
    this.change(item.id, { state: "sending" });
    try {
      await this.transport.send(item, target, control.signal, (sent) => this.change(item.id, { sent }));
      this.lost = 0;
      this.change(item.id, { state: "done", sent: item.size });
    } catch (error) {
      if (!control.signal.aborted) this.failed([item], toFailure(error));
    }
    // Whatever comes of it, another try needs a ticket of its own.
    this.targets.delete(item.id);
    this.running.delete(item.id);
    this.pump();
  }

  /** A lost connection is waited for; a full quota holds what else goes into the folder; all else fails alone. */
  private failed(items: Item[], failure: Failure) {
    const ids = new Set(items.map((i) => i.id));
    if (failure.code === "UNAVAILABLE") {
      this.set(
        this.items.map((i) =>
          ids.has(i.id) && (i.state === "sending" || i.state === "waiting") ? { ...i, state: "waiting" } : i,
        ),
      );
      this.wait();
      return;
    }
    const held = full(failure) ? items[0]?.folder : undefined;
    this.set(
      this.items.map((i) => {
        if (ids.has(i.id)) return i.state === "paused" ? i : { ...i, state: "failed", failure };
        return i.folder === held && i.state === "waiting" ? { ...i, state: "paused" } : i;
      }),
    );
  }

  private wait() {
    if (this.again !== null) return;
    const delay = Math.min(longest, 1000 * 2 ** Math.min(this.lost++, 10));
    this.again = this.now() + delay;
    this.timer = setTimeout(() => this.reconnect(), delay);
  }
}
