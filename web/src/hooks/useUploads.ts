import { useEffect, useRef, useSyncExternalStore } from "react";
import type { Item, Uploads } from "../api/uploads";

/** The uploads into one folder, newest state. */
export function useUploads(uploads: Uploads, folder: string): Item[] {
  return useSyncExternalStore(uploads.subscribe, uploads.list).filter((i) => i.folder === folder);
}

/** Calls when another file of the folder has arrived. */
export function useUploadsDone(uploads: Uploads, folder: string, call: () => void) {
  const done = useUploads(uploads, folder).filter((i) => i.state === "done").length;
  const before = useRef(done);
  useEffect(() => {
    if (done > before.current) call();
    before.current = done;
  }, [done, call]);
}
