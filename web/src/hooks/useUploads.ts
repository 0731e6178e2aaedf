import { useCallback, useEffect, useSyncExternalStore } from "react";
import type { Item, Uploads } from "../api/uploads";

/** Returns the uploads. They change many times a second, so the component updates at most once in `ms`. */
export function useUploads(uploads: Uploads, ms: number): Item[] {
  const subscribe = useCallback(
    (listener: () => void) => {
      let timer: ReturnType<typeof setTimeout> | undefined;
      const stop = uploads.subscribe(() => {
        timer ??= setTimeout(() => {
          timer = undefined;
          listener();
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

/** Calls a function when another file of the folder was uploaded. It ignores progress, so it causes no rendering. */
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
