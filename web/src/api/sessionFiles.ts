import { csrf } from "./auth";
import { fromResponse } from "./errors";
import type { FileEntry, Page } from "./files";

/**
 * The prefix of IDs for the files of a container, which the server serves below /sessions/{id}/files. Paths are
 * relative to the root directory.
 */
const prefix = "session:";

/** Returns the ID for the files of a container; of the main container if kernel is null. */
export const sessionFilesID = (session: string, kernel: string | null) =>
  `${prefix}${session}${kernel ? `:${kernel}` : ""}`;

/** Reports whether an ID names the files of a session, and not a folder. */
export const isSession = (id: string) => id.startsWith(prefix);

/** Returns the URL of a route for the files of a session. */
export function addressOf(id: string, route: string, query: Record<string, string | number | null | undefined>) {
  const [session = "", kernel] = id.slice(prefix.length).split(":");
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...query, kernel }))
    if (value !== null && value !== undefined) search.set(name, String(value));
  return `/sessions/${session}/files${route}?${search}`;
}

/** Returns the path in the form that the server expects. */
export const absolute = (path: string) => `/${path}`;
const relative = (path: string) => path.replace(/^\//, "");

interface Listed {
  name: string;
  path: string;
  type: string;
  size: number;
  mode: string;
  modifiedAt: string;
  target?: string;
  targetType?: string;
}

interface ListPage {
  path: string;
  home: string;
  files: Listed[];
  next: string;
}

const types: readonly FileEntry["type"][] = ["FILE", "DIRECTORY", "SYMLINK"];

export const entryOf = (f: Listed): FileEntry => ({
  name: f.name,
  path: relative(f.path),
  type: types.find((t) => t === f.type) ?? "OTHER",
  size: f.size,
  modifiedAt: f.modifiedAt,
  mode: f.mode,
  target: f.target,
  opens: f.targetType === "DIRECTORY",
});

async function list(id: string, path: string | null, first: number, after: string | null): Promise<ListPage> {
  const response = await fetch(addressOf(id, "", { path, first, after }), { cache: "no-store" });
  if (!response.ok) throw await fromResponse(response);
  return (await response.json()) as ListPage;
}

/** Returns the home directory of a container. */
export const homeOf = async (id: string) => relative((await list(id, null, 1, null)).home);

/** Returns a page of the entries of one directory. */
export async function sessionPage(id: string, path: string, first: number, after: string | null): Promise<Page> {
  const page = await list(id, absolute(path), first, after);
  return { files: page.files.map(entryOf), cursor: page.next || null };
}

/** Returns all entries of one directory; an empty list if the directory does not exist. */
export async function allSessionFiles(id: string, path: string): Promise<FileEntry[]> {
  const all: FileEntry[] = [];
  let cursor: string | null = null;
  try {
    do {
      const next: Page = await sessionPage(id, path, 1000, cursor);
      all.push(...next.files);
      cursor = next.cursor;
    } while (cursor !== null);
  } catch (error) {
    if ((error as { code?: string }).code !== "NOT_FOUND") throw error;
  }
  return all;
}

/** The result for one path. */
interface Result {
  path: string;
  error?: string;
}

/** Creates directories, moves or deletes. Returns a result for each path. */
export async function changeFiles(
  id: string,
  what: "directories" | "moves" | "deletions",
  body: object,
): Promise<{ path: string; error: string | null }[]> {
  const response = await fetch(addressOf(id, `/${what}`, {}), {
    method: "POST",
    headers: { ...csrf, "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw await fromResponse(response);
  const { results } = (await response.json()) as { results: Result[] };
  return results.map((r) => ({ path: relative(r.path), error: r.error ?? null }));
}
