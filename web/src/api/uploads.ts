import type { Failure } from "./errors";

export interface Target {
  path: string;
  url: string;
  ticket: string;
  expiresAt: string;
}

/** The part of an upload that survives a reload of the page. */
export interface Kept {
  folder: string;
  folderName: string;
  path: string;
  /** The path at which the file was selected, if it is uploaded to another path. */
  from?: string;
  size: number;
  modified: number;
  sent: number;
}

export interface Item extends Kept {
  id: number;
  /** Null after a reload of the page: the browser gives access to a file only after the user selects it again. */
  file: File | null;
  state: "waiting" | "sending" | "done" | "failed" | "paused" | "missing";
  failure?: Failure;
}

export type Sendable = Item & { file: File };

/** How files are sent. The implementation for the page is in transfer.ts. */
export interface Transport {
  tickets(folder: string, files: { path: string; size: number }[]): Promise<Target[]>;
  /** Sends one file. If the signal is aborted with the reason "cancel", the partial upload is deleted. */
  send(item: Sendable, target: Target, signal: AbortSignal, progress: (sent: number) => void): Promise<void>;
  /** Drops the upload: it is not resumed. */
  forget(item: Kept): void;
}

/** Where unfinished uploads are stored. */
export interface Memory {
  load(): Kept[];
  save(items: Kept[]): void;
}

/** The number of concurrent uploads. More would only share the same bandwidth. */
const concurrency = 4;
/**
 * The number of tickets per request. They are not requested far ahead because they expire. The server issues at most
 * 1000 at once.
 */
const batch = 200;
/** A ticket that expires within this many milliseconds is not used. */
const minTicketTime = 10_000;
/** The longest delay in milliseconds between two connection attempts. */
const maxDelay = 30_000;

const toFailure = (error: unknown): Failure =>
  typeof error === "object" && error !== null && "code" in error && "message" in error
    ? (error as Failure)
    : { code: "UNAVAILABLE", message: error instanceof Error ? error.message : String(error) };

/**
 * Returns a path as Chromium reports it for files of a selected directory: it turns backslashes in names into slashes.
 */
const withSlashes = (path: string) => path.replaceAll("\\", "/");

const source = (i: Kept) => i.from ?? i.path;
const open = (i: Item) => i.state !== "done";
/** Reports whether the quota or the disk is full, so that the following files would fail, too. */
export const full = (f: Failure) => f.code === "RESOURCE_EXHAUSTED" || f.code === "HTTP 507";

/** Uploads a few files at a time. Uploads continue when the user opens another page of the interface. */
export class Uploads {
  private items: Item[];
  private targets = new Map<number, Target>();
  private running = new Map<number, AbortController>();
  private requesting = false;
  private last = 0;
  private listeners = new Set<() => void>();
  private failures = 0;
  private timer: ReturnType<typeof setTimeout> | undefined;
  /** The time of the next connection attempt; null while connected. */
  private retryAt: number | null = null;

  constructor(
    private transport: Transport,
    private now: () => number = Date.now,
    private memory?: Memory,
  ) {
    this.items = (memory?.load() ?? []).map((k) => ({ ...k, id: ++this.last, file: null, state: "missing" }));
  }

  list = () => this.items;
  retryTime = () => this.retryAt;

  subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  };

  active = () => this.items.some((i) => i.state === "waiting" || i.state === "sending");

  /** Returns the unfinished uploads into a folder by the paths at which their files were selected. */
  unfinished = (folder: string): ReadonlyMap<string, Item> =>
    new Map(this.items.filter((i) => open(i) && i.folder === folder).map((i) => [source(i), i]));

  /** Adds files. Stopped uploads of the same files resume; uploads in progress are not sent twice. */
  add(folder: string, files: { path: string; file: File; from?: string }[], folderName = "") {
    const unfinished = this.unfinished(folder);
    const found = new Map<number, File>();
    const more: Item[] = [];
    for (const { path, file, from } of files) {
      const old = unfinished.get(from ?? path);
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
    this.set([...this.items.map((i) => this.withFile(i, found.get(i.id))), ...more]);
    this.pump();
  }

  /**
   * Attaches files that were selected again to uploads that lost them in a reload. Returns the number of files without
   * such an upload.
   */
  attachFiles(files: { path: string; file: File }[]): number {
    const missing = this.items.filter((i) => i.state === "missing");
    const found = new Map<number, File>();
    for (const { path, file } of files) {
      const item = missing.find(
        (i) =>
          !found.has(i.id) &&
          i.size === file.size &&
          i.modified === file.lastModified &&
          (withSlashes(source(i)) === withSlashes(path) || withSlashes(source(i)).endsWith(`/${withSlashes(path)}`)),
      );
      if (item) found.set(item.id, file);
    }
    this.set(this.items.map((i) => this.withFile(i, found.get(i.id))));
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

  /** Removes unfinished uploads from the list and deletes their partial data. */
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

  /** Removes finished uploads from the list. */
  clear() {
    this.set(this.items.filter(open));
  }

  /** Reconnects now, because the network may be available again. */
  reconnect() {
    clearTimeout(this.timer);
    this.retryAt = null;
    this.pump();
  }

  private withFile(item: Item, file: File | undefined): Item {
    if (!file) return item;
    const same = file.size === item.size && file.lastModified === item.modified;
    if (!same) this.targets.delete(item.id); // a ticket is valid for one size
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
    for (const listener of this.listeners) listener();
    this.memory?.save(items.filter(open));
  }

  private change(id: number, more: Partial<Item>) {
    this.set(this.items.map((i) => (i.id === id ? { ...i, ...more } : i)));
  }

  private validTarget(id: number): Target | undefined {
    const target = this.targets.get(id);
    if (!target || Date.parse(target.expiresAt) - this.now() > minTicketTime) return target;
    this.targets.delete(id);
    return undefined;
  }

  private pump() {
    while (this.retryAt === null && this.running.size < concurrency) {
      const next = this.items.find(
        (i): i is Sendable => i.state === "waiting" && i.file !== null && !this.running.has(i.id),
      );
      if (!next) return;
      const target = this.validTarget(next.id);
      if (!target) {
        void this.requestTickets(next.folder);
        return;
      }
      void this.send(next, target);
    }
  }

  private async requestTickets(folder: string) {
    if (this.requesting) return;
    this.requesting = true;
    const some = this.items
      .filter((i) => i.folder === folder && i.state === "waiting" && !this.validTarget(i.id))
      .slice(0, batch);
    try {
      const targets = await this.transport.tickets(
        folder,
        some.map((i) => ({ path: i.path, size: i.size })),
      );
      this.failures = 0;
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
    this.requesting = false;
    this.pump();
  }

  private async send(item: Sendable, target: Target) {
    const control = new AbortController();
    this.running.set(item.id, control);
    this.change(item.id, { state: "sending" });
    try {
      await this.transport.send(item, target, control.signal, (sent) => this.change(item.id, { sent }));
      this.failures = 0;
      this.change(item.id, { state: "done", sent: item.size });
    } catch (error) {
      if (!control.signal.aborted) this.failed([item], toFailure(error));
    }
    // A ticket is valid for one attempt.
    this.targets.delete(item.id);
    this.running.delete(item.id);
    this.pump();
  }

  /**
   * Handles a failure. A lost connection is retried; a full quota pauses the other uploads into the folder; any other
   * failure affects only its own files.
   */
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
    const fullFolder = full(failure) ? items[0]?.folder : undefined;
    this.set(
      this.items.map((i) => {
        if (ids.has(i.id)) return i.state === "paused" ? i : { ...i, state: "failed", failure };
        return i.folder === fullFolder && i.state === "waiting" ? { ...i, state: "paused" } : i;
      }),
    );
  }

  private wait() {
    if (this.retryAt !== null) return;
    const delay = Math.min(maxDelay, 1000 * 2 ** Math.min(this.failures++, 10));
    this.retryAt = this.now() + delay;
    this.timer = setTimeout(() => this.reconnect(), delay);
  }
}
