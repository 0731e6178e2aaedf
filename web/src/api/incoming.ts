import { baseName, dirName, join } from "./path";
import type { Uploads } from "./uploads";

export interface Found {
  path: string;
  file: File;
}

/** An entry of a directory. */
export interface Entry {
  name: string;
  type: "FILE" | "DIRECTORY" | "SYMLINK" | "OTHER";
  size: number;
  modifiedAt: string;
}

/** Lists one directory of a folder. Returns an empty list if the directory does not exist. */
export type ListDirectory = (folder: string, directory: string) => Promise<readonly Entry[]>;

/** What to do with a file whose name is taken: replace the existing file, keep both, or skip the new one. */
export type Answer = "replace" | "both" | "skip";

export interface Clash extends Found {
  existing: Entry;
}

export interface Question {
  folder: string;
  folderName: string;
  /** The number of files that were selected. */
  count: number;
  /** The number of selected files that already exist unchanged. They are not sent. */
  unchanged: number;
  /** The name conflicts without an answer. */
  clashes: readonly Clash[];
}

/** A question with the files that are uploaded once it is answered. */
interface OpenQuestion extends Question {
  decided: Decided[];
  /** Paths of existing files and of files that will be uploaded. */
  used: Set<string>;
}

type Decided = Found & { from?: string };

/** Returns the first free path of "a (2).txt", "a (3).txt" and so on. */
export function freePath(path: string, used: ReadonlySet<string>): string {
  const name = baseName(path);
  const dot = name.lastIndexOf(".");
  const [stem, ending] = dot > 0 ? [name.slice(0, dot), name.slice(dot)] : [name, ""];
  for (let n = 2; ; n++) {
    const next = join(dirName(path), `${stem} (${n})${ending}`);
    if (!used.has(next)) return next;
  }
}

/** The number of directories that are listed concurrently. */
const concurrency = 4;

/**
 * Returns the existing entries of all directories, from the top directory down, that contain one of the paths, by
 * path.
 */
async function existingEntries(
  top: string,
  paths: readonly string[],
  list: (directory: string) => Promise<readonly Entry[]>,
): Promise<Map<string, Entry>> {
  const wanted = new Set<string>();
  for (const path of paths) for (let d = dirName(path); d && !wanted.has(d); d = dirName(d)) wanted.add(d);
  const existing = new Map<string, Entry>();
  for (let level = [top]; level.length > 0; ) {
    const below: string[] = [];
    for (let i = 0; i < level.length; i += concurrency) {
      await Promise.all(
        level.slice(i, i + concurrency).map(async (directory) => {
          for (const entry of await list(directory)) {
            const path = join(directory, entry.name);
            existing.set(path, entry);
            if (entry.type === "DIRECTORY" && wanted.has(path)) below.push(path);
          }
        }),
      );
    }
    level = below;
  }
  return existing;
}

/**
 * Reports whether the files are equal by size and modification time, as rsync compares them. Uploads keep the
 * modification time.
 */
const same = (file: File, existing: Entry) =>
  existing.type === "FILE" && existing.size === file.size && Date.parse(existing.modifiedAt) === file.lastModified;

/**
 * Collects files before they are uploaded. If names are taken, the user decides once for all files that they selected
 * together.
 */
export class Incoming {
  private questions: readonly OpenQuestion[] = [];
  private listeners = new Set<() => void>();

  constructor(
    private uploads: Uploads,
    private list: ListDirectory,
  ) {}

  /** The first open question, or null. */
  question = (): Question | null => this.questions[0] ?? null;

  subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  };

  /**
   * Uploads files into a directory of a folder, or adds a question if names are taken. Returns the number of files
   * that are skipped because they exist unchanged; 0 if a question shows that number.
   */
  async send(folder: string, directory: string, files: readonly Found[], folderName = ""): Promise<number> {
    const all = files.map((f) => ({ ...f, path: join(directory, f.path) }));
    // Unfinished uploads continue with the decision that was made when they started.
    const begun = this.uploads.unfinished(folder);
    this.uploads.add(
      folder,
      all.filter((f) => begun.has(f.path)),
      folderName,
    );
    const fresh = all.filter((f) => !begun.has(f.path));
    if (fresh.length === 0) return 0;
    const existing = await existingEntries(
      directory,
      fresh.map((f) => f.path),
      (at) => this.list(folder, at),
    );
    const free = fresh.filter((f) => !existing.has(f.path));
    const clashes = fresh.flatMap((f) => {
      const entry = existing.get(f.path);
      return entry && !same(f.file, entry) ? [{ ...f, existing: entry }] : [];
    });
    const unchanged = fresh.length - free.length - clashes.length;
    if (clashes.length === 0) {
      this.uploads.add(folder, free, folderName);
      return unchanged;
    }
    const used = new Set([...existing.keys(), ...all.map((f) => f.path)]);
    this.set([...this.questions, { folder, folderName, count: all.length, unchanged, clashes, decided: free, used }]);
    return 0;
  }

  /** Answers for the first conflict of the question, or for all. The upload starts after the last answer. */
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

  /** Discards all files of the first question. */
  cancel() {
    this.set(this.questions.slice(1));
  }

  private set(questions: readonly OpenQuestion[]) {
    this.questions = questions;
    for (const listener of this.listeners) listener();
  }
}
