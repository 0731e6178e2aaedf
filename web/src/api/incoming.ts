import { baseName, dirName, join } from "./path";
import type { Uploads } from "./uploads";

export interface Found {
  path: string;
  file: File;
}

/** What stands in a directory of the folder. */
export interface Entry {
  name: string;
  type: "FILE" | "DIRECTORY" | "SYMLINK" | "OTHER";
  size: number;
  modifiedAt: string;
}

/** Reads one directory of a folder; of none there is, nothing. */
export type Look = (folder: string, directory: string) => Promise<readonly Entry[]>;

/** What becomes of a file whose name is taken. */
export type Answer = "replace" | "both" | "skip";

export interface Clash extends Found {
  there: Entry;
}

export interface Question {
  folder: string;
  folderName: string;
  /** How many were chosen in all. */
  count: number;
  /** How many of them are there already, unchanged, and are not sent. */
  unchanged: number;
  /** Those that are not answered yet. */
  clashes: readonly Clash[];
}

/** A question, and what goes on its way when it is answered. */
interface Held extends Question {
  decided: Decided[];
  /** Paths that are in use, by a file that is there or by one that comes. */
  used: Set<string>;
}

type Decided = Found & { from?: string };

/** The first of "a (2).txt", "a (3).txt", … that nobody uses. */
export function freePath(path: string, used: ReadonlySet<string>): string {
  const name = baseName(path);
  const dot = name.lastIndexOf(".");
  const [stem, ending] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ""];
  for (let n = 2; ; n++) {
    const next = join(dirName(path), `${stem} (${n})${ending}`);
    if (!used.has(next)) return next;
  }
}

/** Directories that are read at once. */
const lanes = 4;

/** What is there from the top directory down, of the directories that the paths lie in, by path. */
async function standing(
  top: string,
  paths: readonly string[],
  look: (directory: string) => Promise<readonly Entry[]>,
): Promise<Map<string, Entry>> {
  const wanted = new Set<string>();
  for (const path of paths) for (let d = dirName(path); d && !wanted.has(d); d = dirName(d)) wanted.add(d);
  const there = new Map<string, Entry>();
  for (let level = [top]; level.length > 0; ) {
    const below: string[] = [];
    for (let i = 0; i < level.length; i += lanes) {
      await Promise.all(
        level.slice(i, i + lanes).map(async (directory) => {
          for (const entry of await look(directory)) {
            const path = join(directory, entry.name);
            there.set(path, entry);
            if (entry.type === "DIRECTORY" && wanted.has(path)) below.push(path);
          }
        }),
      );
    }
    level = below;
  }
  return there;
}

/** The same file, as rsync takes it: an upload keeps the time of change. */
const same = (file: File, there: Entry) =>
  there.type === "FILE" && there.size === file.size && Date.parse(there.modifiedAt) === file.lastModified;

/** Files on their way to the uploads: before one replaces another a person is asked, once for all that were chosen together. */
export class Incoming {
  private questions: readonly Held[] = [];
  private listeners = new Set<() => void>();

  constructor(
    private uploads: Uploads,
    private look: Look,
  ) {}

  /** The one to be answered. */
  question = (): Question | null => this.questions[0] ?? null;

  subscribe = (tell: () => void) => {
    this.listeners.add(tell);
    return () => void this.listeners.delete(tell);
  };

  /** Sends files into a directory of a folder; tells how many are there already, unchanged, and are not sent, unless a question tells it. */
  async send(folder: string, directory: string, files: readonly Found[], folderName = ""): Promise<number> {
    const all = files.map((f) => ({ ...f, path: join(directory, f.path) }));
    // What was begun goes on where it stopped, as it was decided then.
    const begun = this.uploads.begun(folder);
    this.uploads.add(
      folder,
      all.filter((f) => begun.has(f.path)),
      folderName,
    );
    const fresh = all.filter((f) => !begun.has(f.path));
    if (fresh.length === 0) return 0;
    const there = await standing(
      directory,
      fresh.map((f) => f.path),
      (at) => this.look(folder, at),
    );
    const free = fresh.filter((f) => !there.has(f.path));
    const clashes = fresh.flatMap((f) => {
      const entry = there.get(f.path);
      return entry && !same(f.file, entry) ? [{ ...f, there: entry }] : [];
    });
    const unchanged = fresh.length - free.length - clashes.length;
    if (clashes.length === 0) {
      this.uploads.add(folder, free, folderName);
      return unchanged;
    }
    const used = new Set([...there.keys(), ...all.map((f) => f.path)]);
    this.set([...this.questions, { folder, folderName, count: all.length, unchanged, clashes, decided: free, used }]);
    return 0;
  }

  /** Answers for the first file of the question, or for all that are left; after the last they go on their way. */
  answer(answer: Answer, forAll: boolean) {
    const [held, ...rest] = this.questions;
    if (!held) return;
    const n = forAll ? held.clashes.length : 1;
    const decided = [...held.decided];
    for (const { path, file } of held.clashes.slice(0, n)) {
      if (answer === "skip") continue;
      const to = answer === "both" ? freePath(path, held.used) : path;
      held.used.add(to);
      decided.push(to === path ? { path, file } : { path: to, file, from: path });
    }
    const clashes = held.clashes.slice(n);
    if (clashes.length > 0) return this.set([{ ...held, clashes, decided }, ...rest]);
    this.set(rest);
    this.uploads.add(held.folder, decided, held.folderName);
  }

  /** Nothing of what was chosen together is sent. */
  cancel() {
    this.set(this.questions.slice(1));
  }

  private set(questions: readonly Held[]) {
    this.questions = questions;
    for (const tell of this.listeners) tell();
  }
}
