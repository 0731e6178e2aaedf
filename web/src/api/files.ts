import type { Client } from "@urql/core";
import { fromGraphQL } from "./errors";
import { graphql, type ResultOf } from "./graphql";

const FileFields = graphql(`fragment FileFields on File { name path type size modifiedAt }`);
export interface FileEntry extends ResultOf<typeof FileFields> {
  /** The permissions as ls prints them. Only for files of sessions. */
  mode?: string;
  /** For a symbolic link: its target, and whether the target is a directory. */
  target?: string;
  opens?: boolean;
}

const FilesQuery = graphql(
  `
  query Files($id: ID!, $path: String, $first: Int!, $after: String) {
    node(id: $id) {
      ... on Vfolder { id files(path: $path, first: $first, after: $after) { endCursor files { ...FileFields } } }
    }
  }
`,
  [FileFields],
);
const SearchQuery = graphql(
  `
  query SearchFiles($id: ID!, $path: String, $text: String!, $first: Int!, $after: String) {
    node(id: $id) {
      ... on Vfolder {
        id search(path: $path, text: $text, first: $first, after: $after) { endCursor files { ...FileFields } }
      }
    }
  }
`,
  [FileFields],
);

/** The largest page that the server returns. */
export const page = 1000;

export interface Page {
  files: FileEntry[];
  /** The cursor of the next page; null after the last page. */
  cursor: string | null;
}

const options = { requestPolicy: "network-only" } as const;

/** Returns a page of the entries of one directory of a folder. */
export async function filesPage(
  client: Client,
  folder: string,
  path: string,
  first: number,
  after: string | null,
): Promise<Page> {
  const { data, error } = await client
    .query(FilesQuery, { id: folder, path: path || null, first, after }, options)
    .toPromise();
  if (error) throw fromGraphQL(error);
  return data?.node && "files" in data.node
    ? { files: data.node.files.files, cursor: data.node.files.endCursor }
    : { files: [], cursor: null };
}

/** Searches the names of the files below a directory, and returns a page of the results. */
export async function foundPage(
  client: Client,
  folder: string,
  path: string,
  text: string,
  first: number,
  after: string | null,
): Promise<Page> {
  const { data, error } = await client
    .query(SearchQuery, { id: folder, path: path || null, text, first, after }, options)
    .toPromise();
  if (error) throw fromGraphQL(error);
  return data?.node && "search" in data.node
    ? { files: data.node.search.files, cursor: data.node.search.endCursor }
    : { files: [], cursor: null };
}

/** Returns all entries of one directory; an empty list if the directory does not exist. */
export async function allFiles(client: Client, folder: string, path: string): Promise<FileEntry[]> {
  const all: FileEntry[] = [];
  let cursor: string | null = null;
  try {
    do {
      const next: Page = await filesPage(client, folder, path, page, cursor);
      all.push(...next.files);
      cursor = next.cursor;
    } while (cursor !== null);
  } catch (error) {
    if ((error as { code?: string }).code !== "NOT_FOUND") throw error;
  }
  return all;
}
