import { csrf } from "./auth";
import { fromResponse } from "./errors";
import type { FileEntry, Page } from "./files";

/** The files of a container of a session, below /sessions/{id}/files. Paths begin at the top directory, without its slash. */
const prefix = "session:";

/** Names the files of a container; without a kernel, those of the main one. */
export const sessionFilesID = (session: string, kernel: string | null) =>
  `${prefix}${session}${kernel ? `:${kernel}` : ""}`;

/** Reports whether an ID names the files of a session, and not a folder. */
export const isSession = (id: string) => id.startsWith(prefix);

/** The address of a route for the files of a session. */
export function addressOf(id: string, route: string, query: Record<string, string | number | null | undefined>) {
  const [session = "", kernel] = id.slice(prefix.length).split(":");
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries({ ...query, kernel }))
    if (value !== null && value !== undefined) search.set(name, String(value));
  return `/sessions/${session}/files${route}?${search}`;
}

/** The path as the server takes it. */
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

/** The home directory of a container. */
export const homeOf = async (id: string) => relative((await list(id, null, 1, null)).home);

/** A page of one directory. */
export async function sessionPage(id: string, path: string, first: number, after: string | null): Promise<Page> {
  const page = await list(id, absolute(path), first, after);
  return { files: page.files.map(entryOf), cursor: page.next || null };
}

/** All that is in one directory; nothing, where there is none. */
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

/** What became of one path. */
interface Result {
  path: string;
  error?: string;
}

/** Makes directories, moves or deletes; each path has its own result. */
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
