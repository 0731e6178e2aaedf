import type { FileEntry } from "../../api/files";
import { baseName, dirName, join } from "../../api/path";

const asPeopleCount = new Intl.Collator(undefined, { numeric: true });
/** So many are put in order here; longer lists stay as the server gives them, so that rows do not jump while one reads on. */
export const mostOrdered = 1000;

/** Reports whether an entry is a directory, or a link to one. */
export const opensAsDirectory = (file: Pick<FileEntry, "type" | "opens">) =>
  file.type === "DIRECTORY" || file.opens === true;

/** Directories first, names as people count; only when all are there. */
export const inOrder = (files: readonly FileEntry[], complete: boolean): readonly FileEntry[] =>
  complete && files.length <= mostOrdered
    ? [...files].sort(
        (a, b) => Number(opensAsDirectory(b)) - Number(opensAsDirectory(a)) || asPeopleCount.compare(a.name, b.name),
      )
    : files;

/** Each path with its new one in the directory; null when something would go into itself or stay where it is. */
export function into(
  paths: readonly string[],
  directory: string,
  here: boolean,
): { from: string; to: string }[] | null {
  const wrong = (p: string) => here && (dirName(p) === directory || directory === p || directory.startsWith(`${p}/`));
  return paths.some(wrong) ? null : paths.map((from) => ({ from, to: join(directory, baseName(from)) }));
}

/** As many paths as the server takes at once. */
const mostAtOnce = 1000;

/** The list in parts that the server takes, in order. */
export const inBatches = <T>(list: readonly T[], size = mostAtOnce): T[][] =>
  Array.from({ length: Math.ceil(list.length / size) }, (_, i) => list.slice(i * size, (i + 1) * size));

/** As much of a file is shown and edited as text. */
export const mostText = 1024 * 1024;

/** The text of a file, or null when it is none. */
export function asText(bytes: Uint8Array): string | null {
  if (bytes.includes(0)) return null;
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return null;
  }
}
