import { fromResponse } from "../../api/errors";
import { asText, maxTextBytes } from "./files";
import type { FileStore } from "./store";

export interface Read {
  /** Null if the file is not text. */
  text: string | null;
  /** The ETag of the content. */
  etag: string | null;
}

/** Reads a file; returns null if it is larger than the limit. */
export async function readBytes(
  store: FileStore,
  path: string,
  most: number,
  signal: AbortSignal,
): Promise<Uint8Array<ArrayBuffer> | null> {
  const response = await store.content(path, signal);
  if (!response.ok) throw await fromResponse(response);
  if (Number(response.headers.get("Content-Length")) > most) {
    await response.body?.cancel();
    return null;
  }
  const bytes = new Uint8Array(await response.arrayBuffer());
  return bytes.length > most ? null : bytes;
}

export async function readText(store: FileStore, path: string): Promise<Read> {
  const response = await store.content(path);
  if (!response.ok) throw await fromResponse(response);
  const bytes = new Uint8Array(await response.arrayBuffer());
  return { text: bytes.length > maxTextBytes ? null : asText(bytes), etag: response.headers.get("ETag") };
}

/** Replaces the content of a file atomically. Returns false if the file has changed since it was read. */
export const saveText = (store: FileStore, path: string, text: string, etag: string | null): Promise<boolean> =>
  store.save(path, new TextEncoder().encode(text), etag);
