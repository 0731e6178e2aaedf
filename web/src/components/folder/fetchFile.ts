import { client } from "../../api/client";
import { type Failure, fromGraphQL, fromResponse } from "../../api/errors";
import { graphql } from "../../api/graphql";
import { sendOne } from "../../api/transfer";
import { asText, mostText } from "./files";

const CreateDownload = graphql(
  `mutation CreateDownload($input: CreateDownloadInput!) { createDownload(input: $input) { url expiresAt } }`,
);

async function address(vfolder: string, path: string): Promise<string> {
  const { data, error } = await client.mutation(CreateDownload, { input: { vfolder, path } }).toPromise();
  if (error || !data)
    throw error ? fromGraphQL(error) : ({ code: "INTERNAL", message: "the server did not respond" } satisfies Failure);
  return data.createDownload.url;
}

/** Lets the browser save a file, or a directory as a zip. */
export async function download(vfolder: string, path: string) {
  const link = document.createElement("a");
  link.href = await address(vfolder, path);
  link.download = "";
  link.click();
}

export interface Read {
  /** Null: not text. */
  text: string | null;
  /** Which content it was. */
  etag: string | null;
}

/** All bytes of a file; null when it is larger than that. */
export async function readBytes(
  vfolder: string,
  path: string,
  most: number,
  signal: AbortSignal,
): Promise<Uint8Array<ArrayBuffer> | null> {
  const response = await fetch(await address(vfolder, path), { cache: "no-store", signal });
  if (!response.ok) throw await fromResponse(response);
  if (Number(response.headers.get("Content-Length")) > most) {
    await response.body?.cancel();
    return null;
  }
  const bytes = new Uint8Array(await response.arrayBuffer());
  return bytes.length > most ? null : bytes;
}

export async function readText(vfolder: string, path: string): Promise<Read> {
  const response = await fetch(await address(vfolder, path), { cache: "no-store" });
  if (!response.ok) throw await fromResponse(response);
  const bytes = new Uint8Array(await response.arrayBuffer());
  return { text: bytes.length > mostText ? null : asText(bytes), etag: response.headers.get("ETag") };
}

/** Writes the text in place of the file, whole or not at all. Tells false when the file is no longer the one that was read. */
export const saveText = (vfolder: string, path: string, text: string, etag: string | null): Promise<boolean> =>
  sendOne(vfolder, path, new TextEncoder().encode(text), etag);
