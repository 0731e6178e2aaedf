import { useCallback, useEffect, useRef, useState } from "react";
import type { Failure } from "../../api/errors";
import { type FileEntry, type Page, page } from "../../api/files";
import { useGeneration } from "../../api/live";
import type { FileStore } from "./store";

/** The server searches for at most so many at once. */
const foundAtOnce = 100;
/** A search may return empty pages: it stops after this many requests until the person asks for more. */
const maxPages = 20;

/** One directory, or what a search below it finds, page by page. */
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

  /** Reads on behind what is there until so many more have come. */
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
    /** Reads again as much as was shown. */
    reload: () => void read([], null, Math.max(page, loaded.current)),
  };
}
