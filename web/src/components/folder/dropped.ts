import type { Found } from "../../api/incoming";

/** All files of what was dropped, folders walked through; paths begin with the dropped name. */
export async function dropped(transfer: DataTransfer): Promise<Found[]> {
  // Entries must be taken before the first await: the transfer is emptied then.
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
    // A reader gives at most a hundred entries at a time.
    const some = await new Promise<FileSystemEntry[]>((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return;
    for (const inner of some) await walk(inner, path, found);
  }
}

/** Files chosen with a dialog; a chosen folder brings its own paths, in which Chromium makes slashes of a file's backslashes. */
export const chosen = (files: Iterable<File>): Found[] =>
  [...files].map((file) => {
    const path = file.webkitRelativePath;
    return { path: path.slice(0, Math.max(0, path.length - file.name.length)) + file.name, file };
  });

/** What a name must not be, in words; null when it is fine. */
export function badName(name: string): string | null {
  if (!name.trim()) return "Enter a name.";
  if (name === "." || name === "..") return "Use more than dots in a name.";
  if (name.includes("/")) return "Use no slashes in a name.";
  if (new TextEncoder().encode(name).length > 255) return "Use at most 255 bytes.";
  return null;
}

/** 1 to 64 of letters, digits, dot, dash, underscore; not only dots. */
export const goodFolderName = (name: string) => /^[A-Za-z0-9._-]{1,64}$/.test(name) && !/^\.+$/.test(name);
