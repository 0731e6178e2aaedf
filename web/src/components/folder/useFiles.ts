import { useCallback, useEffect, useRef, useState } from "react";
import type { Failure } from "../../api/errors";
import { type FileEntry, type Page, page } from "../../api/files";
import { useGeneration } from "../../api/live";
import type { FileStore } from "./store";

/** The largest page of search results that the server returns. */
const foundAtOnce = 100;
/** A search can return empty pages: it stops after this many requests until the user asks for more. */
const maxPages = 20;

/** Loads one directory, or the results of a search below it, page by page. */
export function useFiles(store: FileStore, path: string, text: string) {
  const generation = useGeneration();
  const [list, setList] = useState<Page | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [loading, setLoading] = useState(true);
  const turn = useRef(0);
  const loaded = useRef(0);

  const fetchPage = useCallback(
    (first: number, after: string | null) =>
      text && store.search ? store.search(path, text, first, after) : store.page(path, first, after),
    [store, path, text],
  );

  /** Loads pages after the given files until `want` more have arrived. */
  const read = useCallback(
    async (had: FileEntry[], after: string | null, want: number) => {
      const mine = ++turn.current;
      setLoading(true);
      setFailure(null);
      try {
        let files = had;
        let cursor = after;
        for (let pages = 0; !text || pages < maxPages; pages++) {
          const next = await fetchPage(Math.min(text ? foundAtOnce : page, want), cursor);
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
    void read([], null, text ? foundAtOnce : page);
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
    more: list?.cursor ? () => void read(list.files, list.cursor, text ? foundAtOnce : page) : null,
    /** Loads as many entries as before again. */
    reload: () => void read([], null, Math.max(page, loaded.current)),
  };
}
