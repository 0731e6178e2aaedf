import { DetailedError, Upload } from "tus-js-client";
import { csrf } from "./auth";
import { client } from "./client";
import { type Failure, fromGraphQL, fromResponse } from "./errors";
import { allFiles } from "./files";
import { graphql } from "./graphql";
import { Incoming } from "./incoming";
import { allSessionFiles, isSession } from "./sessionFiles";
import { sessionTransport } from "./sessionUpload";
import { type Kept, type Memory, type Transport, Uploads } from "./uploads";

const CreateUpload = graphql(`
  mutation CreateUpload($input: CreateUploadInput!) {
    createUpload(input: $input) { uploads { path url ticket expiresAt } }
  }
`);

/** Names one file's upload, so that it goes on where it stopped, also after the page was closed. */
const fingerprint = ({ folder, path, size, modified }: Kept) => `berth.upload ${folder} ${path} ${size} ${modified}`;

function explain(error: Error): Failure {
  if (!(error instanceof DetailedError) || !error.originalResponse)
    return { code: "UNAVAILABLE", message: error.message };
  const response = error.originalResponse;
  const failure: Failure = {
    code: `HTTP ${response.getStatus()}`,
    message: error.message,
    requestId: response.getHeader("X-Request-Id") ?? undefined,
  };
  try {
    const problem = JSON.parse(response.getBody()) as { code?: string; detail?: string; limit?: unknown };
    failure.code = problem.code ?? failure.code;
    failure.message = problem.detail ?? failure.message;
  } catch {
    // Not problem JSON: the status is all there is.
  }
  return failure;
}

const folderTransport: Transport = {
  async tickets(vfolder, files) {
    const result = await client.mutation(CreateUpload, { input: { vfolder, files } }).toPromise();
    if (result.error || !result.data)
      throw result.error ? fromGraphQL(result.error) : { code: "INTERNAL", message: "the server did not respond" };
    return result.data.createUpload.uploads;
  },

  send(item, target, signal, progress) {
    const key = fingerprint(item);
    // Absolute, because an upload's own address comes relative to it.
    const endpoint = new URL(target.url, location.href);
    // Any proxy of the volume has the upload: the one it began at may be away.
    const known = localStorage.getItem(key)?.split("/").at(-1);
    return new Promise((resolve, reject) => {
      const upload = new Upload(item.file, {
        endpoint: endpoint.href,
        metadata: { mtime: (item.modified / 1000).toFixed(3) },
        uploadUrl: known ? `${endpoint.href}/${known}` : undefined,
        headers: { Authorization: `Bearer ${target.ticket}`, ...(endpoint.origin === location.origin ? csrf : {}) },
        retryDelays: [0, 1000, 3000],
        // A full quota is not emptied by asking again.
        onShouldRetry: (error) => {
          const status = error.originalResponse?.getStatus() ?? 0;
          return status !== 507 && (status < 400 || status >= 500 || status === 409 || status === 423);
        },
        storeFingerprintForResuming: false,
        onUploadUrlAvailable: () => {
          if (upload.url) localStorage.setItem(key, upload.url);
        },
        onProgress: progress,
        onSuccess: () => {
          localStorage.removeItem(key);
          resolve();
        },
        onError: (error) => {
          // An upload that the server no longer knows cannot be gone on with.
          const status = error instanceof DetailedError ? error.originalResponse?.getStatus() : undefined;
          if (status && status >= 400 && status < 500) localStorage.removeItem(key);
          reject(explain(error));
        },
      });
      signal.addEventListener("abort", () => {
        upload.abort(signal.reason === "cancel").catch(() => undefined);
        reject(new Error("stopped"));
      });
      upload.start();
    });
  },

  forget: (item) => localStorage.removeItem(fingerprint(item)),
};

const of = (id: string): Transport => (isSession(id) ? sessionTransport : folderTransport);

const transport: Transport = {
  tickets: (id, files) => of(id).tickets(id, files),
  send: (item, target, signal, progress) => of(item.folder).send(item, target, signal, progress),
  forget: (item) => of(item.folder).forget(item),
};

/** A browser keeps some megabytes; beyond this many files only those that follow are forgotten. */
const mostKept = 10_000;
const place = "berth.uploads";

const memory: Memory & { flush: () => void } = (() => {
  let pending: Kept[] | null = null;
  const flush = () => {
    if (!pending) return;
    const kept = pending.slice(0, mostKept).map(({ folder, folderName, path, from, size, modified, sent }) => ({
      folder,
      folderName,
      path,
      from,
      size,
      modified,
      sent,
    }));
    pending = null;
    try {
      if (kept.length > 0) localStorage.setItem(place, JSON.stringify(kept));
      else localStorage.removeItem(place);
    } catch {
      // A full or forbidden store: the uploads go on, only a reload forgets them.
    }
  };
  return {
    load: () => {
      try {
        return JSON.parse(localStorage.getItem(place) ?? "[]") as Kept[];
      } catch {
        return [];
      }
    },
    // Progress comes many times a second.
    save: (items) => {
      if (!pending) setTimeout(flush, 500);
      pending = items;
    },
    flush,
  };
})();

export const uploads = new Uploads(transport, Date.now, memory);
export const incoming = new Incoming(uploads, (folder, directory) =>
  isSession(folder) ? allSessionFiles(folder, directory) : allFiles(client, folder, directory),
);

/**
 * Sends one small file in one piece, beside the list of uploads. With an etag
 * it replaces the file that was read so, and tells false when that one is no
 * longer there.
 */
export async function sendOne(
  folder: string,
  path: string,
  bytes: Uint8Array<ArrayBuffer>,
  etag: string | null,
): Promise<boolean> {
  const [target] = await folderTransport.tickets(folder, [{ path, size: bytes.length }]);
  if (!target) throw { code: "INTERNAL", message: "the server returned no ticket for this file" } satisfies Failure;
  const endpoint = new URL(target.url, location.href);
  const headers = {
    Authorization: `Bearer ${target.ticket}`,
    "Tus-Resumable": "1.0.0",
    ...(endpoint.origin === location.origin ? csrf : {}),
  };
  const refused = async (response: Response) => {
    if (response.status !== 412) throw await fromResponse(response);
    return false;
  };
  const made = await fetch(endpoint, {
    method: "POST",
    headers: { ...headers, "Upload-Length": String(bytes.length), ...(etag === null ? {} : { "If-Match": etag }) },
  });
  if (!made.ok) return refused(made);
  if (bytes.length === 0) return true; // complete with its beginning
  const upload = new URL(made.headers.get("Location") ?? "", endpoint);
  const sent = await fetch(upload, {
    method: "PATCH",
    headers: { ...headers, "Upload-Offset": "0", "Content-Type": "application/offset+octet-stream" },
    body: bytes,
  });
  if (sent.ok) return true;
  // Nobody goes on with it; what is left over would go by itself, later.
  await fetch(upload, { method: "DELETE", headers }).catch(() => undefined);
  return refused(sent);
}

addEventListener("online", () => uploads.reconnect());
addEventListener("pagehide", memory.flush);
addEventListener("beforeunload", (event) => {
  if (uploads.active()) event.preventDefault();
});
