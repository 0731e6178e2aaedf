import { Button, Modal, Textarea } from "@mantine/core";
import { useEffect, useState } from "react";
import type { Failure } from "../../api/errors";
import type { FileEntry } from "../../api/files";
import { useFocusBack } from "../../hooks/useFocusBack";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { bytes } from "../format";
import { FailureNote } from "../Note";
import { type Read, readText, saveText } from "./fetchFile";
import { maxTextBytes } from "./files";
import type { FileStore } from "./store";

interface Props {
  store: FileStore;
  file: FileEntry;
  writable: boolean;
  onSaved: () => void;
}

/** Shows the content of a file if it is text and not too large. */
export function TextView({ store, file, writable, onSaved }: Props) {
  const [read, setRead] = useState<Read | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [editing, setEditing] = useState(false);
  const [saved, setSaved] = useState(0);
  const big = file.size > maxTextBytes;
  useEffect(() => {
    setFailure(null);
    if (big) return;
    let current = true;
    readText(store, file.path).then(
      (r) => current && setRead(r),
      (error: Failure) => current && setFailure(error),
    );
    return () => {
      current = false;
    };
  }, [store, file.path, file.size, file.modifiedAt, big, saved]);

  if (big)
    return <p className="dim">{t("Only files up to {{limit}} are shown here.", { limit: bytes(maxTextBytes) })}</p>;
  if (failure) return <FailureNote failure={failure} />;
  if (!read) return <p className="dim">{t("Loading…")}</p>;
  if (read.text === null) return <p className="dim">{t("This is not a text file. Download it to see it.")}</p>;
  return (
    <>
      {read.text === "" ? (
        <p className="dim">{t("The file is empty.")}</p>
      ) : (
        <pre className="text-view" tabIndex={0} aria-label={t("Text of {{name}}", { name: file.name })}>
          {read.text}
        </pre>
      )}
      {writable ? (
        <div>
          <Button variant="default" size="compact-sm" onClick={() => setEditing(true)}>
            {t("Edit")}
          </Button>
        </div>
      ) : null}
      {editing ? (
        <Editor
          store={store}
          file={file}
          opened={read}
          onClose={() => setEditing(false)}
          onSaved={() => {
            setSaved((n) => n + 1);
            setEditing(false);
            onSaved();
          }}
        />
      ) : null}
    </>
  );
}

interface EditorProps {
  store: FileStore;
  file: FileEntry;
  opened: Read;
  onClose: () => void;
  onSaved: () => void;
}

/** Edits a text. It does not overwrite changes that another user has saved in the meantime without asking. */
function Editor({ store, file, opened, onClose, onSaved }: EditorProps) {
  useFocusBack();
  // The version that the edit is based on. A reload of the file must not change the text during the edit.
  const [base, setBase] = useState(opened);
  const [text, setText] = useState(opened.text ?? "");
  const [theirs, setTheirs] = useState<Read | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [busy, setBusy] = useState(false);
  const [confirming, setConfirming] = useState(false);
  const size = new TextEncoder().encode(text).length;
  const unsaved = text !== base.text;
  async function save(over: Read) {
    setBusy(true);
    setFailure(null);
    try {
      if (await saveText(store, file.path, text, over.etag)) {
        toast({ text: t("{{name}} was saved.", { name: file.name }) });
        return onSaved();
      }
      setTheirs(await now());
    } catch (error) {
      setFailure(error as Failure);
    }
    setBusy(false);
  }
  /** Returns the current content; an empty text if the file was deleted. */
  const now = () =>
    readText(store, file.path).catch((error: Failure): Read => {
      if (error.code === "NOT_FOUND") return { text: "", etag: null };
      throw error;
    });
  function applyVersion(read: Read) {
    setBase(read);
    setText(read.text ?? "");
    setTheirs(null);
  }
  const close = () => (unsaved && !confirming ? setConfirming(true) : onClose());
  return (
    <Modal
      opened
      onClose={close}
      size="xl"
      title={t("Edit {{name}}", { name: file.name })}
      closeButtonProps={{ "aria-label": t("Close") }}
      closeOnClickOutside={!unsaved}
    >
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          void save(theirs ?? base);
        }}
      >
        <Textarea
          aria-label={t("Text of {{name}}", { name: file.name })}
          value={text}
          autosize
          minRows={12}
          maxRows={24}
          spellCheck={false}
          data-autofocus
          styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 12 } }}
          onChange={(e) => {
            setText(e.currentTarget.value);
            setConfirming(false);
          }}
          error={
            size > maxTextBytes
              ? t("Only files up to {{limit}} can be edited here.", { limit: bytes(maxTextBytes) })
              : undefined
          }
        />
        {theirs ? (
          <div className="failure" role="alert">
            <b>
              {theirs.etag === null
                ? t("Someone deleted the file after you opened it.")
                : t("Someone changed the file after you opened it. Your changes are not saved yet.")}
            </b>
            {theirs.etag === null ? null : theirs.text === null ? (
              <p>{t("The file is no longer text.")}</p>
            ) : (
              <details>
                <summary>{t("Current contents")}</summary>
                <pre className="text-view" tabIndex={0} aria-label={t("Current contents")}>
                  {theirs.text}
                </pre>
              </details>
            )}
            {theirs.text === null || theirs.etag === null ? null : (
              <div>
                <Button variant="default" size="compact-sm" onClick={() => applyVersion(theirs)}>
                  {t("Load the current contents and discard mine")}
                </Button>
              </div>
            )}
          </div>
        ) : null}
        {confirming ? (
          <p className="tone-wait" role="alert">
            {t("Your changes are not saved.")}
          </p>
        ) : null}
        <FailureNote failure={failure} what={t("Unsaved changes")} />
        <div className="row" style={{ justifyContent: "flex-end" }}>
          <span className="dim">{bytes(size)}</span>
          <Button variant="default" onClick={onClose}>
            {unsaved ? t("Discard") : t("Close")}
          </Button>
          <Button type="submit" loading={busy} disabled={!unsaved || size > maxTextBytes}>
            {theirs ? t("Overwrite with mine") : t("Save")}
          </Button>
        </div>
      </form>
    </Modal>
  );
}
