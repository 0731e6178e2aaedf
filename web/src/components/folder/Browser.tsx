import { Button, Checkbox } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useRef, useState } from "react";
import { graphql } from "../../api/graphql";
import { uploads } from "../../api/transfer";
import { useAction } from "../../hooks/useAction";
import { useGathered } from "../../hooks/useGathered";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { useUploadsDone } from "../../hooks/useUploads";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { Confirm } from "../Confirm";
import { Empty, FailureNote } from "../Note";
import { bytes, when } from "../format";
import { Crumbs } from "./Crumbs";
import { NameDialog } from "./NameDialog";
import { type Found, badName, chosen, join } from "./dropped";

const FilesQuery = graphql(`
  query Files($id: ID!, $path: String, $first: Int!) {
    node(id: $id) { ... on Vfolder { id files(path: $path, first: $first) { endCursor files { name path type size modifiedAt } } } }
  }
`);
const MakeDirectories = graphql(`mutation MakeDirectories($input: MakeDirectoriesInput!) { makeDirectories(input: $input) { results { path error } } }`);
const MoveFiles = graphql(`mutation MoveFiles($input: MoveFilesInput!) { moveFiles(input: $input) { results { path error } } }`);
const DeleteFiles = graphql(`mutation DeleteFiles($input: DeleteFilesInput!) { deleteFiles(input: $input) { results { path error } } }`);
const CreateDownload = graphql(`mutation CreateDownload($input: CreateDownloadInput!) { createDownload(input: $input) { url expiresAt } }`);

/** Entries of one page; the server gives at most 1000 at once. */
const step = 200;

interface Props {
  folder: string;
  name: string;
  path: string;
  /** Whether the viewer may change the files. */
  writes: boolean;
  onOpen: (path: string) => void;
  onFiles: (files: Found[]) => void;
}

export function Browser({ folder, name, path, writes, onOpen, onFiles }: Props) {
  const [first, setFirst] = useState(step);
  const { data, failure, refetch } = useLiveQuery({ query: FilesQuery, variables: { id: folder, path: path || null, first } });
  const make = useAction(MakeDirectories);
  const move = useAction(MoveFiles);
  const remove = useAction(DeleteFiles);
  const download = useAction(CreateDownload, true);
  const [picked, setPicked] = useState<Set<string>>(new Set());
  const [making, makeOpen] = useDisclosure(false);
  const [removing, removeOpen] = useDisclosure(false);
  const [moving, setMoving] = useState<string | null>(null);
  const files = useRef<HTMLInputElement>(null);
  const dirs = useRef<HTMLInputElement>(null);
  useUploadsDone(uploads, folder, useGathered(refetch, 500));

  const list = data?.node && "files" in data.node ? data.node.files : null;
  const rows = [...(list?.files ?? [])].sort(
    (a, b) => Number(b.type === "directory") - Number(a.type === "directory") || a.name.localeCompare(b.name, undefined, { numeric: true }),
  );
  const movingName = moving?.split("/").at(-1) ?? "";

  async function get(at: string) {
    const done = await download.run({ input: { vfolder: folder, path: at } });
    if (!done) return;
    const link = document.createElement("a");
    link.href = done.createDownload.url;
    link.download = "";
    link.click();
  }
  function told(results: readonly { path: string; error: string | null }[]) {
    const failed = results.filter((r) => r.error);
    for (const f of failed) toast({ failure: { code: "FAILED_PRECONDITION", message: `${f.path}: ${f.error}` } });
    return failed;
  }
  async function removeAll() {
    const done = await remove.run({ input: { vfolder: folder, paths: [...picked], recursive: true } });
    if (!done) return;
    const failed = told(done.deleteFiles.results);
    setPicked(new Set(failed.map((f) => f.path)));
    removeOpen.close();
    refetch();
  }
  function toggle(at: string) {
    const next = new Set(picked);
    if (!next.delete(at)) next.add(at);
    setPicked(next);
  }
  function take(input: HTMLInputElement) {
    if (input.files) onFiles(chosen(input.files));
    input.value = "";
  }

  return (
    <section className="panel" aria-label={t("Files")}>
      <div className="panel-head" style={{ flexWrap: "wrap" }}>
        <Crumbs name={name} path={path} onOpen={onOpen} />
        <div className="push row">
          {picked.size > 0 ? (
            <Button variant="outline" color="red" onClick={removeOpen.open}>
              {t("Delete ({{count}})", { count: picked.size })}
            </Button>
          ) : null}
          <Button variant="subtle" onClick={() => void get(path)}>
            {t("Download as zip")}
          </Button>
          {writes ? (
            <>
              <Button variant="default" onClick={makeOpen.open}>
                {t("New directory")}
              </Button>
              <Button variant="default" onClick={() => dirs.current?.click()}>
                {t("Upload folder")}
              </Button>
              <Button variant="light" onClick={() => files.current?.click()}>
                {t("Upload files")}
              </Button>
            </>
          ) : null}
          <input ref={files} type="file" multiple hidden aria-label={t("Files to upload")} data-upload onChange={(e) => take(e.currentTarget)} />
          <input ref={dirs} type="file" hidden aria-label={t("Folder to upload")} onChange={(e) => take(e.currentTarget)} {...{ webkitdirectory: "" }} />
        </div>
      </div>
      {failure ? <div style={{ padding: 12 }}><FailureNote failure={failure} what={t("The files could not be read")} /></div> : null}
      {list && rows.length === 0 ? (
        <Empty title={t("Empty")} cli={`berth folder put ${name}${path ? `:${path}` : ""} ./data`}>
          {t("Drop files or folders here. An interrupted upload goes on where it stopped.")}
        </Empty>
      ) : null}
      {rows.length > 0 ? (
        <div className="scroll-x">
          <table className="grid">
            <thead>
              <tr>
                <th className="pick">
                  <Checkbox aria-label={t("Select all")} checked={rows.every((r) => picked.has(r.path))} indeterminate={picked.size > 0 && !rows.every((r) => picked.has(r.path))}
                    onChange={(e) => setPicked(new Set(e.currentTarget.checked ? rows.map((r) => r.path) : []))} />
                </th>
                <th>{t("Name")}</th>
                <th className="num">{t("Size")}</th>
                <th>{t("Changed")}</th>
                <th><span className="dim">{t("Actions")}</span></th>
              </tr>
            </thead>
            <tbody>
              {rows.map((f) => (
                <tr key={f.path} aria-selected={picked.has(f.path)}>
                  <td className="pick">
                    <Checkbox aria-label={t("Select {{name}}", { name: f.name })} checked={picked.has(f.path)} onChange={() => toggle(f.path)} />
                  </td>
                  <td className="clip">
                    {f.type === "directory" ? (
                      <button type="button" className="linkish" onClick={() => onOpen(f.path)}>
                        {f.name}/
                      </button>
                    ) : f.name}
                    {f.type === "symlink" || f.type === "other" ? <span className="dim"> {t(f.type)}</span> : null}
                  </td>
                  <td className="num nowrap">{f.type === "file" ? bytes(f.size) : ""}</td>
                  <td className="nowrap dim">{when(f.modifiedAt)}</td>
                  <td className="nowrap" style={{ width: 1 }}>
                    <Button variant="subtle" size="compact-xs" aria-label={t("Download {{name}}", { name: f.name })} onClick={() => void get(f.path)}>{t("Download")}</Button>
                    <Button variant="subtle" size="compact-xs" aria-label={t("Rename {{name}}", { name: f.name })} onClick={() => setMoving(f.path)}>{t("Rename")}</Button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
      {list?.endCursor && first < 1000 ? (
        <Button variant="subtle" fullWidth onClick={() => setFirst(Math.min(1000, first + step))}>
          {t("Show more")}
        </Button>
      ) : null}
      <NameDialog opened={making} title={t("New directory")} action={t("Create")} initial="" mutation={make} valid={(n) => badName(n) === null} onClose={makeOpen.close}
        onName={async (n) => { const done = await make.run({ input: { vfolder: folder, paths: [join(path, n)] } }); if (done) { told(done.makeDirectories.results); refetch(); } return done; }} />
      <NameDialog opened={moving !== null} title={t("Rename {{name}}", { name: movingName })} action={t("Rename")} initial={movingName} mutation={move}
        valid={(n) => badName(n) === null} onClose={() => setMoving(null)}
        onName={async (n) => { const done = await move.run({ input: { vfolder: folder, items: [{ from: moving!, to: join(path, n) }] } }); if (done) { told(done.moveFiles.results); refetch(); } return done; }} />
      <Confirm opened={removing} title={t("Delete {{count}} entries?", { count: picked.size })} action={t("Delete")} busy={remove.busy} failure={remove.failure}
        onConfirm={() => void removeAll()} onClose={() => { remove.clear(); removeOpen.close(); }}>
        <ul style={{ margin: 0, paddingLeft: 18 }}>
          {[...picked].slice(0, 8).map((p) => <li key={p}><code>{p}</code></li>)}
          {picked.size > 8 ? <li>{t("and {{count}} more", { count: picked.size - 8 })}</li> : null}
        </ul>
      </Confirm>
    </section>
  );
}
