import { useEffect, useState } from "react";
import type { Failure } from "../../../api/errors";
import type { FileEntry } from "../../../api/files";
import { readBytes } from "../fetchFile";
import type { FileStore } from "../store";

export interface Bytes {
  /** Null while the file is loading. */
  bytes: Uint8Array<ArrayBuffer> | null;
  /** Whether the file is too large to be fetched. */
  big: boolean;
  failure: Failure | null;
}

/** Fetches the content of a file, and again after the file has changed. */
export function useBytes(store: FileStore, file: Pick<FileEntry, "path" | "size" | "modifiedAt">, most: number): Bytes {
  const { path, size, modifiedAt } = file;
  const [state, setState] = useState<Bytes>({ bytes: null, big: size > most, failure: null });
  useEffect(() => {
    setState({ bytes: null, big: size > most, failure: null });
    if (size > most) return;
    const control = new AbortController();
    readBytes(store, path, most, control.signal).then(
      (bytes) => control.signal.aborted || setState({ bytes, big: bytes === null, failure: null }),
      (failure) =>
        control.signal.aborted ||
        setState({
          bytes: null,
          big: false,
          failure:
            "code" in failure && "message" in failure ? failure : { code: "UNAVAILABLE", message: String(failure) },
        }),
    );
    return () => control.abort();
  }, [store, path, size, modifiedAt, most]);
  return state;
}
