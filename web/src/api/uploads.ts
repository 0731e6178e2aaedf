import type { Failure } from "./errors";

export interface Target {
  path: string;
  url: string;
  ticket: string;
  expiresAt: string;
}

export interface Item {
  id: number;
  folder: string;
  path: string;
  file: File;
  sent: number;
  state: "waiting" | "sending" | "done" | "failed" | "stopped";
  failure?: Failure;
}

/** How files travel; the page's own is in transfer.ts. */
export interface Transport {
  tickets(folder: string, files: { path: string; size: number }[]): Promise<Target[]>;
  send(item: Item, target: Target, signal: AbortSignal, progress: (sent: number) => void): Promise<void>;
}

/** At once. More would only share the same wire. */
const lanes = 3;
/** Tickets are asked for in batches, but not far ahead: they expire. */
const batch = 60;
/** A ticket is not begun with when so little of its time is left. */
const margin = 10_000;

const toFailure = (error: unknown): Failure =>
  typeof error === "object" && error !== null && "code" in error && "message" in error
    ? (error as Failure)
    : { code: "UNAVAILABLE", message: error instanceof Error ? error.message : String(error) };

/** Sends files a few at a time; outlives the page that it was started from. */
export class Uploads {
  private items: Item[] = [];
  private targets = new Map<number, Target>();
  private running = new Map<number, AbortController>();
  private asking = false;
  private last = 0;
  private listeners = new Set<() => void>();

  constructor(private transport: Transport, private now: () => number = Date.now) {}

  list = () => this.items;

  subscribe = (tell: () => void) => {
    this.listeners.add(tell);
    return () => void this.listeners.delete(tell);
  };

  active = () => this.items.some((i) => i.state === "waiting" || i.state === "sending");

  add(folder: string, files: { path: string; file: File }[]) {
    const more = files.map(({ path, file }): Item => ({ id: ++this.last, folder, path, file, sent: 0, state: "waiting" }));
    this.set([...this.items, ...more]);
    this.pump();
  }

  retry(id: number) {
    this.change(id, { state: "waiting", failure: undefined });
    this.pump();
  }

  stop(id: number) {
    this.running.get(id)?.abort();
    this.change(id, { state: "stopped" });
    this.pump();
  }

  /** Takes what is over off the list. */
  clear(folder: string) {
    this.set(this.items.filter((i) => i.folder !== folder || i.state === "waiting" || i.state === "sending"));
  }

  private set(items: Item[]) {
    this.items = items;
    for (const tell of this.listeners) tell();
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
    while (this.running.size < lanes) {
      const next = this.items.find((i) => i.state === "waiting");
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
    const some = this.items.filter((i) => i.folder === folder && i.state === "waiting" && !this.fresh(i.id)).slice(0, batch);
    try {
      const targets = await this.transport.tickets(folder, some.map((i) => ({ path: i.path, size: i.file.size })));
      const byPath = new Map(targets.map((t) => [t.path, t]));
      some.forEach((item, n) => {
        const target = byPath.get(item.path) ?? targets[n];
        if (target) this.targets.set(item.id, target);
        else this.change(item.id, { state: "failed", failure: { code: "INTERNAL", message: "no ticket for this file" } });
      });
    } catch (error) {
      for (const item of some) this.change(item.id, { state: "failed", failure: toFailure(error) });
    }
    this.asking = false;
    this.pump();
  }

  private async send(item: Item, target: Target) {
    const control = new AbortController();
    this.running.set(item.id, control);
    this.change(item.id, { state: "sending" });
    try {
      await this.transport.send(item, target, control.signal, (sent) => this.change(item.id, { sent }));
      this.change(item.id, { state: "done", sent: item.file.size });
    } catch (error) {
      if (!control.signal.aborted) this.change(item.id, { state: "failed", failure: toFailure(error) });
    }
    // Whatever comes of it, another try needs a ticket of its own.
    this.targets.delete(item.id);
    this.running.delete(item.id);
    this.pump();
  }
}
