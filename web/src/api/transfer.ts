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

/** Returns the key by which the upload of a file is found again, also after the page was closed. */
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
    // The body is not problem JSON: the status is the only information.
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
    // An absolute URL, because the Location of an upload is relative to it.
    const endpoint = new URL(target.url, location.href);
    // Every storage proxy of the volume has the upload, and the one that it started at may be down.
    const known = localStorage.getItem(key)?.split("/").at(-1);
    return new Promise((resolve, reject) => {
      const upload = new Upload(item.file, {
        endpoint: endpoint.href,
        metadata: { mtime: (item.modified / 1000).toFixed(3) },
        uploadUrl: known ? `${endpoint.href}/${known}` : undefined,
        headers: { Authorization: `Bearer ${target.ticket}`, ...(endpoint.origin === location.origin ? csrf : {}) },
        retryDelays: [0, 1000, 3000],
        // A retry does not help against a full quota.
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
          // An upload that the server has forgotten cannot be resumed.
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

/**
 * The number of uploads that are kept over a reload. localStorage holds only some megabytes, so later ones are
 * dropped.
 */
const maxKept = 10_000;
const storageKey = "berth.uploads";

const memory: Memory & { flush: () => void } = (() => {
  let pending: Kept[] | null = null;
  const flush = () => {
    if (!pending) return;
    const kept = pending.slice(0, maxKept).map(({ folder, folderName, path, from, size, modified, sent }) => ({
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
      if (kept.length > 0) localStorage.setItem(storageKey, JSON.stringify(kept));
      else localStorage.removeItem(storageKey);
    } catch {
      // localStorage is full or disabled: uploads continue, but a reload drops them.
    }
  };
  return {
    load: () => {
      try {
        return JSON.parse(localStorage.getItem(storageKey) ?? "[]") as Kept[];
      } catch {
        return [];
      }
    },
    // Progress is reported many times a second, so it is written at most every 500 ms.
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
 * Uploads one small file without adding it to the list of uploads. With an etag, it replaces the file only if the file
 * still has that etag; otherwise it returns false.
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
  if (bytes.length === 0) return true; // an empty file is complete after the POST
  const upload = new URL(made.headers.get("Location") ?? "", endpoint);
  const sent = await fetch(upload, {
    method: "PATCH",
    headers: { ...headers, "Upload-Offset": "0", "Content-Type": "application/offset+octet-stream" },
    body: bytes,
  });
  if (sent.ok) return true;
  // Nothing resumes this upload. Delete its partial data now; the server would delete it later.
  await fetch(upload, { method: "DELETE", headers }).catch(() => undefined);
  return refused(sent);
}

addEventListener("online", () => uploads.reconnect());
addEventListener("pagehide", memory.flush);
addEventListener("beforeunload", (event) => {
  if (uploads.active()) event.preventDefault();
});
