import { csrf } from "../../api/auth";
import { fromResponse } from "../../api/errors";
import { absolute, addressOf, changeFiles, sessionFilesID, sessionPage } from "../../api/sessionFiles";
import { saveAs } from "../folder/folderStore";
import type { FileStore } from "../folder/store";

/** The files in a container of a running session. */
export function sessionStore(session: { id: string; name: string }, kernel: string | null): FileStore {
  const id = sessionFilesID(session.id, kernel);
  return {
    id,
    name: session.name,
    page: (path, first, after) => sessionPage(id, path, first, after),
    makeDirectory: (path) => changeFiles(id, "directories", { paths: [absolute(path)] }),
    rename: (from, to) => changeFiles(id, "moves", { items: [{ from: absolute(from), to: absolute(to) }] }),
    remove: (paths) => changeFiles(id, "deletions", { paths: paths.map(absolute), recursive: true }),
    async download(path, directory) {
      saveAs(addressOf(id, directory ? "/archive" : "/content", { path: absolute(path) }));
    },
    content: (path, signal) =>
      fetch(addressOf(id, "/content", { path: absolute(path) }), { cache: "no-store", signal }),
    async save(path, bytes, etag) {
      const response = await fetch(addressOf(id, "/content", { path: absolute(path) }), {
        method: "PUT",
        headers: { ...csrf, ...(etag === null ? {} : { "If-Match": etag }) },
        body: bytes,
      });
      if (response.ok) return true;
      if (response.status !== 412) throw await fromResponse(response);
      return false;
    },
    written: absolute,
    uploadLine: (path) => `berth cp -r ./data ${session.name}:${absolute(path)}`,
  };
}
