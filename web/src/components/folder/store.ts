import type { Page } from "../../api/files";

/** The result for one path. */
export interface Outcome {
  path: string;
  error: string | null;
}

/** Files that can be browsed: those of a folder or of a session. Calls throw a Failure. */
export interface FileStore {
  /** The ID of the store in the list of uploads. */
  id: string;
  /** The name of the root directory. */
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
  /** Fetches the content of a file; the response has its ETag. */
  content(path: string, signal?: AbortSignal): Promise<Response>;
  /** Replaces a file as a whole. Returns false if the file no longer has the given ETag. */
  save(path: string, bytes: Uint8Array<ArrayBuffer>, etag: string | null): Promise<boolean>;
  /** Returns a path as text for users. */
  written(path: string): string;
  /** Returns the shell command that uploads into a directory. */
  uploadLine(path: string): string;
}
