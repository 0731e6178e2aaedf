import type { FileEntry } from "../../api/files";
import { baseName, dirName, join } from "../../api/path";

const asPeopleCount = new Intl.Collator(undefined, { numeric: true });
/**
 * The most entries that are sorted here. Longer lists keep the order of the server, so that rows do not move while
 * more are loaded.
 */
export const maxSorted = 1000;

/** Reports whether an entry is a directory, or a link to one. */
export const opensAsDirectory = (file: Pick<FileEntry, "type" | "opens">) =>
  file.type === "DIRECTORY" || file.opens === true;

/** Sorts directories first and names with numbers in numeric order, if the list is complete. */
export const sortFiles = (files: readonly FileEntry[], complete: boolean): readonly FileEntry[] =>
  complete && files.length <= maxSorted
    ? [...files].sort(
        (a, b) => Number(opensAsDirectory(b)) - Number(opensAsDirectory(a)) || asPeopleCount.compare(a.name, b.name),
      )
    : files;

/**
 * Returns the source and target of each path for a move into a directory; null if a path would stay or would move into
 * itself.
 */
export function moveTargets(
  paths: readonly string[],
  directory: string,
  here: boolean,
): { from: string; to: string }[] | null {
  const wrong = (p: string) => here && (dirName(p) === directory || directory === p || directory.startsWith(`${p}/`));
  return paths.some(wrong) ? null : paths.map((from) => ({ from, to: join(directory, baseName(from)) }));
}

/** The most paths that the server accepts in a request. */
const mostAtOnce = 1000;

/** Splits a list into batches that the server accepts, in order. */
export const inBatches = <T>(list: readonly T[], size = mostAtOnce): T[][] =>
  Array.from({ length: Math.ceil(list.length / size) }, (_, i) => list.slice(i * size, (i + 1) * size));

/** The largest text that is shown and edited, in bytes. */
export const maxTextBytes = 1024 * 1024;

/** Returns the text of a file; null if the bytes are not text. */
export function asText(bytes: Uint8Array): string | null {
  if (bytes.includes(0)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}
