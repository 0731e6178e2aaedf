import type { Found } from "../../api/incoming";

/** Returns all files of a drop, including those in directories. Paths begin with the name of the dropped item. */
export async function dropped(transfer: DataTransfer): Promise<Found[]> {
  // Read the entries before the first await, because the browser empties the transfer then.
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry()).filter((e) => e !== null);
  if (entries.length === 0) return [...transfer.files].map((file) => ({ path: file.name, file }));
  const found: Found[] = [];
  for (const entry of entries) await walk(entry, "", found);
  return found;
}

async function walk(entry: FileSystemEntry, above: string, found: Found[]): Promise<void> {
  const path = above ? `${above}/${entry.name}` : entry.name;
  if (entry.isFile) {
    const file = await new Promise<File>((resolve, reject) => (entry as FileSystemFileEntry).file(resolve, reject));
    found.push({ path, file });
    return;
  }
  const reader = (entry as FileSystemDirectoryEntry).createReader();
  for (;;) {
    // A reader returns at most 100 entries at a time.
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return;
    for (const inner of some) await walk(inner, path, found);
  }
}

/**
 * Returns the files of a file dialog. The name comes from file.name, because Chromium turns its backslashes into
 * slashes in webkitRelativePath.
 */
export const chosen = (files: Iterable<File>): Found[] =>
  [...files].map((file) => {
    const path = file.webkitRelativePath;
    return { path: path.slice(0, Math.max(0, path.length - file.name.length)) + file.name, file };
  });

/** Returns why a name is invalid, as text; null if it is valid. */
export function badName(name: string): string | null {
  if (!name.trim()) return "Enter a name.";
  if (name === "." || name === "..") return "Use more than dots in a name.";
  if (name.includes("/")) return "Use no slashes in a name.";
  if (new TextEncoder().encode(name).length > 255) return "Use at most 255 bytes.";
  return null;
}

/** Reports whether a name has 1 to 64 letters, digits, dots, dashes or underscores, and not only dots. */
export const goodFolderName = (name: string) => /^[A-Za-z0-9._-]{1,64}$/.test(name) && !/^\.+$/.test(name);
