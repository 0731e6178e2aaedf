import { useEffect, useRef, useSyncExternalStore } from "react";
import type { Item, Uploads } from "../api/uploads";

/** The uploads, newest state. */
export const useUploads = (uploads: Uploads): Item[] => useSyncExternalStore(uploads.subscribe, uploads.list);

/** Calls when another file of the folder has arrived. */
export function useUploadsDone(uploads: Uploads, folder: string, call: () => void) {
  const done = useUploads(uploads).filter((i) => i.folder === folder && i.state === "done").length;
  const before = useRef(done);
  useEffect(() => {
    if (done > before.current) call();
    before.current = done;
  }, [done, call]);
}
