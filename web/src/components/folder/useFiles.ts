import { useCallback, useEffect, useRef, useState } from "react";
import { useClient } from "urql";
import { type Failure, fromGraphQL } from "../../api/errors";
import { type ResultOf, graphql } from "../../api/graphql";
import { useGeneration } from "../../api/live";

const FileFields = graphql(`fragment FileFields on File { name path type size modifiedAt }`);
export type FileEntry = ResultOf<typeof FileFields>;

const FilesQuery = graphql(`
  query Files($id: ID!, $path: String, $first: Int!, $after: String) {
    node(id: $id) { ... on Vfolder { id files(path: $path, first: $first, after: $after) { endCursor files { ...FileFields } } } }
  }
`, [FileFields]);
const SearchQuery = graphql(`
  query SearchFiles($id: ID!, $path: String, $text: String!, $first: Int!, $after: String) {
    node(id: $id) { ... on Vfolder { id search(path: $path, text: $text, first: $first, after: $after) { endCursor files { ...FileFields } } } }
  }
`, [FileFields]);

/** Entries of one page, as many as the server gives at once. */
const page = 1000;
/** The server searches for at most so many at once. */
const foundPage = 100;
/** A search may give pages with nothing on them: so many are turned before a person is asked. */
const patience = 20;

interface List {
  files: FileEntry[];
  /** Where to go on; null at the end. */
  cursor: string | null;
}

/** One directory, or what a search below it finds, page by page. */
export function useFiles(folder: string, path: string, text: string) {
  const client = useClient();
  const generation = useGeneration();
  const [list, setList] = useState<List | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [loading, setLoading] = useState(true);
  const turn = useRef(0);
  const loaded = useRef(0);

  const fetchPage = useCallback(
    async (first: number, after: string | null): Promise<List> => {
      const options = { requestPolicy: "network-only" } as const;
      const at = { id: folder, path: path || null, first, after };
      if (text) {
        const { data, error } = await client.query(SearchQuery, { ...at, text }, options).toPromise();
        if (error) throw fromGraphQL(error);
        return data?.node && "search" in data.node ? { files: data.node.search.files, cursor: data.node.search.endCursor } : { files: [], cursor: null };
      }
      const { data, error } = await client.query(FilesQuery, at, options).toPromise();
      if (error) throw fromGraphQL(error);
      return data?.node && "files" in data.node ? { files: data.node.files.files, cursor: data.node.files.endCursor } : { files: [], cursor: null };
    },
    [client, folder, path, text],
  );

  /** Reads on behind what is there until so many more have come. */
  const read = useCallback(
    async (had: FileEntry[], after: string | null, want: number) => {
      const mine = ++turn.current;
      setLoading(true);
      setFailure(null);
      try {
        let files = had;
        let cursor = after;
        for (let pages = 0; !text || pages < patience; pages++) {
          const next = await fetchPage(Math.min(text ? foundPage : page, want), cursor);
          if (mine !== turn.current) return;
          files = [...files, ...next.files];
          cursor = next.cursor;
          if (cursor === null || files.length - had.length >= want) break;
        }
        loaded.current = files.length;
        setList({ files, cursor });
      } catch (error) {
        if (mine === turn.current) setFailure(error as Failure);
      }
      if (mine === turn.current) setLoading(false);
    },
    [fetchPage, text],
  );
  useEffect(() => {
    loaded.current = 0;
    setList(null);
    void read([], null, text ? foundPage : page);
    return () => void turn.current++;
  }, [read, text]);
  const seen = useRef(generation);
  useEffect(() => {
    if (seen.current === generation) return;
    seen.current = generation;
    void read([], null, Math.max(page, loaded.current));
  }, [generation, read]);

  return {
    list,
    failure,
    loading,
    more: list?.cursor ? () => void read(list.files, list.cursor, text ? foundPage : page) : null,
    /** Reads again as much as was shown. */
    reload: () => void read([], null, Math.max(page, loaded.current)),
  };
}
