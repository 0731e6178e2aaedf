import { client } from "../../api/client";
import { type Failure, fromGraphQL } from "../../api/errors";
import { filesPage, foundPage } from "../../api/files";
import { graphql } from "../../api/graphql";
import { sendOne } from "../../api/transfer";
import type { FileStore } from "./store";

const CreateDownload = graphql(
  `mutation CreateDownload($input: CreateDownloadInput!) { createDownload(input: $input) { url expiresAt } }`,
);
const CreateDirectories = graphql(
  `mutation CreateDirectories($input: CreateDirectoriesInput!) { createDirectories(input: $input) { results { path error } } }`,
);
const RenameFile = graphql(
  `mutation RenameFile($input: MoveFilesInput!) { moveFiles(input: $input) { results { path error } } }`,
);
const DeleteFiles = graphql(
  `mutation DeleteFiles($input: DeleteFilesInput!) { deleteFiles(input: $input) { results { path error } } }`,
);

/** Returns the data of a mutation, or throws its failure. */
function dataOf<T>({ data, error }: { data?: T; error?: Parameters<typeof fromGraphQL>[0] }): T {
  if (data && !error) return data;
  throw error ? fromGraphQL(error) : ({ code: "INTERNAL", message: "the server did not respond" } satisfies Failure);
}

async function address(vfolder: string, path: string): Promise<string> {
  return dataOf(await client.mutation(CreateDownload, { input: { vfolder, path } }).toPromise()).createDownload.url;
}

/** Makes the browser download a URL. */
export function saveAs(href: string) {
  const link = document.createElement("a");
  link.href = href;
  link.download = "";
  link.click();
}

/** The files of a folder. */
export const folderStore = (id: string, name: string): FileStore => ({
  id,
  name,
  page: (path, first, after) => filesPage(client, id, path, first, after),
  search: (path, text, first, after) => foundPage(client, id, path, text, first, after),
  async makeDirectory(path) {
    const done = dataOf(
      await client.mutation(CreateDirectories, { input: { vfolder: id, paths: [path] } }).toPromise(),
    );
    return [...done.createDirectories.results];
  },
  async rename(from, to) {
    const input = { vfolder: id, items: [{ from, to }] };
    return [...dataOf(await client.mutation(RenameFile, { input }).toPromise()).moveFiles.results];
  },
  async remove(paths) {
    const input = { vfolder: id, paths, recursive: true };
    return [...dataOf(await client.mutation(DeleteFiles, { input }).toPromise()).deleteFiles.results];
  },
  download: async (path) => saveAs(await address(id, path)),
  content: async (path, signal) => fetch(await address(id, path), { cache: "no-store", signal }),
  save: (path, bytes, etag) => sendOne(id, path, bytes, etag),
  written: (path) => path,
  uploadLine: (path) => `berth folder put ${name}${path ? `:${path}` : ""} ./data`,
});
