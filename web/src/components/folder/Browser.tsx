import { Button, TextInput } from "@mantine/core";
import { useDebouncedCallback, useDebouncedValue, useDisclosure } from "@mantine/hooks";
import { useMemo, useRef, useState } from "react";
import type { Failure } from "../../api/errors";
import type { Found } from "../../api/incoming";
import { baseName, dirName, join } from "../../api/path";
import { uploads } from "../../api/transfer";
import { useCall } from "../../hooks/useCall";
import { toast } from "../../hooks/useToasts";
import { useUploadsDone } from "../../hooks/useUploads";
import { language, t } from "../../i18n";
import { Confirm } from "../Confirm";
import { Empty, FailureNote } from "../Note";
import { Crumbs } from "./Crumbs";
import { badName, chosen } from "./dropped";
import { FileDetails } from "./FileDetails";
import { FileTable } from "./FileTable";
import { useTaskChanges } from "./FolderTasks";
import { inBatches, opensAsDirectory, sortFiles } from "./files";
import { NameDialog } from "./NameDialog";
import { type Refusal, Refused, refusals } from "./Refused";
import { Relocate } from "./Relocate";
import type { FileStore } from "./store";
import { useFiles } from "./useFiles";

interface Props {
  store: FileStore;
  path: string;
  /** The folder, if the store is one: its files can be moved and copied to other folders. */
  folder?: string;
  /** The directory to show first, if it is not the root. */
  home?: string;
  /** Whether the viewer can change the files. */
  writable: boolean;
  onOpen: (path: string) => void;
  onFiles: (files: Found[]) => void;
}

/** Shows the files of a folder or a session: a directory on the left, the selected file on the right. */
export function Browser({ store, path, folder, home, writable, onOpen, onFiles }: Props) {
  const [typed, setTyped] = useState("");
  const [text] = useDebouncedValue(typed.trim(), 300);
  const { list, failure, loading, more, reload } = useFiles(store, path, text);
  const make = useCall(store.makeDirectory);
  const rename = useCall(store.rename);
  const remove = useCall(store.remove);
  const [picked, setPicked] = useState<ReadonlySet<string>>(new Set());
  const [at, setAt] = useState<string | null>(null);
  const [making, makeOpen] = useDisclosure(false);
  const [removing, setRemoving] = useState<string[]>([]);
  const [refused, setRefused] = useState<Refusal[]>([]);
  const [renaming, setRenaming] = useState<string | null>(null);
  const [relocating, setRelocating] = useState<{ kind: "move" | "copy"; paths: string[] } | null>(null);
  const files = useRef<HTMLInputElement>(null);
  const dirs = useRef<HTMLInputElement>(null);
  const again = useDebouncedCallback(reload, { delay: 500, maxWait: 500 });
  useUploadsDone(uploads, store.id, again);

  const rows = useMemo(() => sortFiles(list?.files ?? [], list?.cursor === null), [list]);
  const shown = rows.find((r) => r.path === at) ?? null;

  const get = (what: string, directory: boolean) =>
    void store.download(what, directory).catch((failure: Failure) => toast({ failure }));

  /** Reports the result for a single path: its error becomes the error of the whole action. */
  const one = (results: readonly { path: string; error: string | null }[]) => {
    const [wrong] = refusals(results);
    if (wrong) toast({ failure: { code: "FAILED_PRECONDITION", message: `${wrong.path}: ${wrong.error}` } });
    reload();
    return true;
  };
  async function removeAll() {
    const wrong: Refusal[] = [];
    for (const paths of inBatches(removing)) {
      const done = await remove.run(paths);
      if (!done) return reload();
      wrong.push(...refusals(done));
    }
    setPicked(new Set(wrong.map((w) => w.path)));
    setRefused(wrong);
    setRemoving(wrong.map((w) => w.path));
    reload();
  }
  function take(input: HTMLInputElement) {
    if (input.files) onFiles(chosen(input.files));
    input.value = "";
  }
  const chosenPaths = [...picked];

  return (
    <section className="panel" aria-label={t("Files")}>
      {folder ? <AfterTasks folder={folder} call={again} /> : null}
      <div className="panel-head tool-bar">
        <Crumbs name={store.name} path={path} onOpen={onOpen} />
        <div className="push row tool-bar">
          {store.search ? (
            <TextInput
              type="search"
              w={170}
              aria-label={t("Search files in this directory")}
              placeholder={t("Search files")}
              value={typed}
              onChange={(e) => setTyped(e.currentTarget.value)}
            />
          ) : null}
          {home !== undefined && home !== path ? (
            <Button variant="subtle" onClick={() => onOpen(home)}>
              {t("Home directory")}
            </Button>
          ) : null}
          <Button variant="subtle" onClick={() => get(path, true)}>
            {t("Download as zip")}
          </Button>
          {writable ? (
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
          <input
            ref={files}
            type="file"
            multiple
            hidden
            aria-label={t("Files to upload")}
            data-upload
            onChange={(e) => take(e.currentTarget)}
          />
          <input
            ref={dirs}
            type="file"
            hidden
            aria-label={t("Folder to upload")}
            data-upload-folder
            onChange={(e) => take(e.currentTarget)}
            {...{ webkitdirectory: "" }}
          />
        </div>
      </div>
      {picked.size > 0 ? (
        <div className="panel-head tool-bar" role="toolbar" aria-label={t("Actions for the selection")}>
          <span role="status">{t("{{count}} selected", { count: picked.size })}</span>
          {writable && folder ? (
            <Button
              variant="default"
              size="compact-sm"
              onClick={() => setRelocating({ kind: "move", paths: chosenPaths })}
            >
              {t("Move")}
            </Button>
          ) : null}
          {folder ? (
            <Button
              variant="default"
              size="compact-sm"
              onClick={() => setRelocating({ kind: "copy", paths: chosenPaths })}
            >
              {t("Copy")}
            </Button>
          ) : null}
          {writable ? (
            <Button variant="outline" color="red" size="compact-sm" onClick={() => setRemoving(chosenPaths)}>
              {t("Delete ({{count}})", { count: picked.size })}
            </Button>
          ) : null}
          <Button variant="subtle" size="compact-sm" onClick={() => setPicked(new Set())}>
            {t("Clear selection")}
          </Button>
        </div>
      ) : null}
      {failure ? (
        <div style={{ padding: 12 }}>
          <FailureNote failure={failure} what={t("The files could not be loaded")} />
          <Button mt="xs" variant="default" size="compact-sm" loading={loading} onClick={reload}>
            {t("Retry")}
          </Button>
        </div>
      ) : null}
      {list === null && !failure ? (
        <p className="empty dim" role="status">
          {text ? t("Searching…") : t("Loading…")}
        </p>
      ) : null}
      {list && rows.length === 0 && !failure ? (
        text ? (
          <Empty title={more ? t("Nothing found so far") : t("No file name contains this text")}>
            {path ? t("Searched in {{path}} and its subdirectories.", { path }) : null}
          </Empty>
        ) : (
          <Empty title={t("This directory is empty")} cli={writable ? store.uploadLine(path) : undefined}>
            {writable ? t("Drop files or folders here. Interrupted uploads resume.") : null}
          </Empty>
        )
      ) : null}
      {rows.length > 0 ? (
        <div className={`explorer${shown ? " two" : ""}`}>
          <FileTable
            rows={rows}
            picked={picked}
            at={at}
            found={text !== ""}
            onPick={setPicked}
            onAt={setAt}
            onOpen={(f) => (opensAsDirectory(f) ? onOpen(f.path) : setAt(f.path))}
            onRename={writable ? setRenaming : undefined}
            onRemove={writable ? setRemoving : undefined}
            onEnd={more && !text ? more : undefined}
          />
          {shown ? (
            <FileDetails
              store={store}
              file={shown}
              writable={writable}
              onClose={() => setAt(null)}
              onDownload={() => get(shown.path, opensAsDirectory(shown))}
              onOpen={() => onOpen(shown.path)}
              onRename={() => setRenaming(shown.path)}
              onRelocate={folder ? (kind) => setRelocating({ kind, paths: [shown.path] }) : undefined}
              onRemove={() => setRemoving([shown.path])}
              onSaved={reload}
            />
          ) : null}
        </div>
      ) : null}
      {more ? (
        <div className="panel-foot row">
          <span className="dim" role="status">
            {text
              ? t("{{n}} found so far", { n: rows.length })
              : t("The first {{n}}. Scroll for more.", { n: rows.length.toLocaleString(language()) })}
          </span>
          <Button className="push" variant="subtle" size="compact-sm" loading={loading} onClick={more}>
            {text ? t("Continue search") : t("Show more")}
          </Button>
        </div>
      ) : null}
      <NameDialog
        opened={making}
        title={t("New directory")}
        action={t("Create")}
        initial=""
        mutation={make}
        valid={(n) => badName(n) === null}
        onClose={makeOpen.close}
        onName={async (n) => {
          const done = await make.run(join(path, n));
          return done && one(done);
        }}
      />
      <NameDialog
        opened={renaming !== null}
        title={t("Rename {{name}}", { name: baseName(renaming ?? "") })}
        action={t("Rename")}
        initial={baseName(renaming ?? "")}
        mutation={rename}
        valid={(n) => badName(n) === null}
        onClose={() => setRenaming(null)}
        onName={async (n) => {
          const to = join(dirName(renaming!), n);
          const done = await rename.run(renaming!, to);
          if (done && refusals(done).length === 0) setAt(to);
          return done && one(done);
        }}
      />
      {relocating && folder ? (
        <Relocate
          kind={relocating.kind}
          folder={{ id: folder, name: store.name }}
          paths={relocating.paths}
          path={path}
          onClose={() => setRelocating(null)}
          onDone={() => {
            setPicked(new Set());
            reload();
          }}
        />
      ) : null}
      <Confirm
        opened={removing.length > 0}
        title={t("Delete {{count}} entries?", { count: removing.length })}
        action={refused.length > 0 ? t("Retry") : t("Delete")}
        busy={remove.busy}
        failure={remove.failure}
        onConfirm={() => void removeAll()}
        onClose={() => {
          remove.clear();
          setRefused([]);
          setRemoving([]);
        }}
      >
        <div className="stack">
          <Refused rows={refused} />
          {refused.length > 0 ? null : (
            <>
              <span>{t("Directories are deleted with everything in them. Deleted files do not go to the trash.")}</span>
              <ul style={{ margin: 0, paddingLeft: 18 }}>
                {removing.slice(0, 8).map((p) => (
                  <li key={p}>
                    <code>{store.written(p)}</code>
                  </li>
                ))}
                {removing.length > 8 ? <li>{t("and {{count}} more", { count: removing.length - 8 })}</li> : null}
              </ul>
            </>
          )}
        </div>
      </Confirm>
    </section>
  );
}

/** Calls a function when a task of the folder has ended. */
function AfterTasks({ folder, call }: { folder: string; call: () => void }) {
  useTaskChanges(folder, call);
  return null;
}
