import { useCallback, useEffect, useSyncExternalStore } from "react";
import type { Item, Uploads } from "../api/uploads";

/** The uploads. Progress comes many times a second, and is shown at most once in `ms`. */
export function useUploads(uploads: Uploads, ms: number): Item[] {
  const subscribe = useCallback(
    (tell: () => void) => {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const stop = uploads.subscribe(() => {
        timer ??= setTimeout(() => {
          timer = undefined;
          tell();
        }, ms);
      });
      return () => {
        clearTimeout(timer);
        stop();
      };
    },
    [uploads, ms],
  );
  return useSyncExternalStore(subscribe, uploads.list);
}

/** Calls when another file of the folder has arrived; progress renders nothing. */
export function useUploadsDone(uploads: Uploads, folder: string, call: () => void) {
  useEffect(() => {
    const count = () => uploads.list().filter((i) => i.folder === folder && i.state === "done").length;
    let before = count();
    return uploads.subscribe(() => {
      const now = count();
      if (now > before) call();
      before = now;
    });
  }, [uploads, folder, call]);
}
