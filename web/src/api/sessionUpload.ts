import { csrf } from "./auth";
import type { Failure } from "./errors";
import { absolute, addressOf } from "./sessionFiles";
import type { Kept, Sendable, Transport } from "./uploads";

/**
 * Bytes per request. A server that rejects a request still reads the rest of its body, so that the browser sees the
 * response.
 */
const partSize = 16 << 20;
/** Attempts while another connection of the same upload is still being closed. */
const maxTries = 5;

const fingerprint = ({ folder, path, size, modified }: Kept) => `berth.upload ${folder} ${path} ${size} ${modified}`;

/** Returns the ID of an upload, by which the server resumes it after an interruption. */
function nameOf(item: Kept): string {
  const known = localStorage.getItem(fingerprint(item));
  if (known) return known;
  const name = [...crypto.getRandomValues(new Uint8Array(16))].map((b) => b.toString(16).padStart(2, "0")).join("");
  localStorage.setItem(fingerprint(item), name);
  return name;
}

interface Written {
  offset: number;
  file: object | null;
}

/** Sends one request with XMLHttpRequest, because fetch does not report upload progress. */
function request(
  method: string,
  url: string,
  body: Blob | null,
  signal: AbortSignal | null,
  progress?: (sent: number) => void,
): Promise<Written> {
  return new Promise((resolve, reject) => {
    const xhr = new XMLHttpRequest();
    xhr.open(method, url);
    for (const [name, value] of Object.entries(csrf)) xhr.setRequestHeader(name, value);
    const lost = () => reject({ code: "UNAVAILABLE", message: "the connection was lost" } satisfies Failure);
    xhr.onerror = lost;
    xhr.ontimeout = lost;
    xhr.onabort = () => reject(new Error("stopped"));
    if (progress) xhr.upload.onprogress = (e) => progress(e.loaded);
    xhr.onload = () => {
      const answer = parsed(xhr.responseText);
      if (xhr.status >= 200 && xhr.status < 300) return resolve({ offset: 0, file: null, ...answer });
      reject({
        code: answer.code ?? `HTTP ${xhr.status}`,
        message: answer.detail ?? xhr.statusText,
        field: answer.field,
        requestId: answer.requestId,
      } satisfies Failure);
    };
    signal?.addEventListener("abort", () => xhr.abort());
    if (signal?.aborted) return reject(new Error("stopped"));
    xhr.send(body);
  });
}

function parsed(text: string): Partial<Written> & Partial<Failure> & { detail?: string } {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

const address = (item: Kept, route: string, more = {}) =>
  addressOf(item.folder, route, { path: absolute(item.path), upload: nameOf(item), ...more });

/** Returns how many bytes of an upload the container has. */
const receivedBytes = async (item: Kept, signal: AbortSignal) =>
  localStorage.getItem(fingerprint(item)) ? (await request("GET", address(item, "/upload"), null, signal)).offset : 0;

const discard = (item: Kept) => {
  if (!localStorage.getItem(fingerprint(item))) return;
  void request("DELETE", address(item, "/upload"), null, null).catch(() => undefined);
  localStorage.removeItem(fingerprint(item));
};

async function send(item: Sendable, signal: AbortSignal, progress: (sent: number) => void) {
  let offset = await receivedBytes(item, signal);
  for (let failed = 0; ; ) {
    const more = { size: item.size, offset, modified: item.modified };
    const start = offset;
    try {
      const body = item.file.slice(offset, offset + partSize);
      const done = await request("PUT", address(item, "/content", more), body, signal, (sent) =>
        progress(Math.min(item.size, start + sent)),
      );
      failed = 0;
      offset = done.offset;
      if (done.file) return localStorage.removeItem(fingerprint(item));
    } catch (error) {
      const { code, field } = error as Failure;
      if (code !== "ABORTED" || field !== "offset" || ++failed >= maxTries) throw error;
      await new Promise((again) => setTimeout(again, 1000));
      offset = await receivedBytes(item, signal);
    }
  }
}

/** Uploads into containers of sessions. The login authorizes them, so they need no ticket. */
export const sessionTransport: Transport = {
  tickets: async (_, files) =>
    files.map(({ path }) => ({ path, url: "", ticket: "", expiresAt: "9999-12-31T00:00:00Z" })),

  async send(item, _, signal, progress) {
    try {
      await send(item, signal, progress);
    } catch (error) {
      if (signal.reason === "cancel") discard(item);
      throw error;
    }
  },

  forget: discard,
};
