import type { Page } from "../../api/files";

/** What became of one path. */
export interface Outcome {
  path: string;
  error: string | null;
}

/** Files that can be browsed: those of a folder or of a session. Calls throw a Failure. */
export interface FileStore {
  /** Names the store among the uploads. */
  id: string;
  /** The name of the top directory. */
  name: string;
  page(path: string, first: number, after: string | null): Promise<Page>;
  /** Searches the names of the files below a directory. */
  search?(path: string, text: string, first: number, after: string | null): Promise<Page>;
  makeDirectory(path: string): Promise<Outcome[]>;
  rename(from: string, to: string): Promise<Outcome[]>;
  /** Removes files, and directories with everything in them. */
  remove(paths: string[]): Promise<Outcome[]>;
  /** Lets the browser save a file, or a directory as a zip. */
  download(path: string, directory: boolean): Promise<void>;
  /** The content of a file; its ETag says which content. */
  content(path: string, signal?: AbortSignal): Promise<Response>;
  /** Replaces a file as a whole; reports false if it is no longer the one with the ETag. */
  save(path: string, bytes: Uint8Array<ArrayBuffer>, etag: string | null): Promise<boolean>;
  /** A path as people write it. */
  written(path: string): string;
  /** The command that uploads into a directory. */
  uploadLine(path: string): string;
}
