import { Button, Modal, Textarea } from "@mantine/core";
import { useEffect, useState } from "react";
import type { Failure } from "../../api/errors";
import { useFocusBack } from "../../hooks/useFocusBack";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { FailureNote } from "../Note";
import { bytes } from "../format";
import { type Read, readText, saveText } from "./fetchFile";
import { mostText } from "./files";
import type { FileEntry } from "./useFiles";

interface Props {
  folder: string;
  file: FileEntry;
  writes: boolean;
  onSaved: () => void;
}

/** What stands in a file, when it is text and short enough. */
export function TextView({ folder, file, writes, onSaved }: Props) {
  const [read, setRead] = useState<Read | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [editing, setEditing] = useState(false);
  const big = file.size > mostText;
  useEffect(() => {
    setRead(null);
    setFailure(null);
    if (big) return;
    let current = true;
    readText(folder, file.path).then((r) => current && setRead(r), (error: Failure) => current && setFailure(error));
    return () => {
      current = false;
    };
  }, [folder, file.path, file.size, file.modifiedAt, big]);

  if (big) return <p className="dim">{t("Files up to {{limit}} are shown here.", { limit: bytes(mostText) })}</p>;
  if (failure) return <FailureNote failure={failure} />;
  if (!read) return <p className="dim">{t("Loading…")}</p>;
  if (read.text === null) return <p className="dim">{t("Not text; download it to see it.")}</p>;
  return (
    <>
      {read.text === "" ? <p className="dim">{t("The file is empty.")}</p> : <pre className="text-view" tabIndex={0} aria-label={t("Text of {{name}}", { name: file.name })}>{read.text}</pre>}
      {writes ? <div><Button variant="default" size="compact-sm" onClick={() => setEditing(true)}>{t("Edit")}</Button></div> : null}
      {editing ? <Editor folder={folder} file={file} read={read} onClose={() => setEditing(false)} onSaved={(text) => { setRead({ text, etag: null }); setEditing(false); onSaved(); }} /> : null}
    </>
  );
}

function Editor({ folder, file, read, onClose, onSaved }: { folder: string; file: FileEntry; read: Read; onClose: () => void; onSaved: (text: string) => void }) {
  useFocusBack();
  const [text, setText] = useState(read.text ?? "");
  const [failure, setFailure] = useState<Failure | null>(null);
  const [busy, setBusy] = useState(false);
  const [changed, setChanged] = useState(false);
  const size = new TextEncoder().encode(text).length;
  const unsaved = text !== read.text;
  async function save() {
    setBusy(true);
    setFailure(null);
    try {
      if (await saveText(folder, file.path, text, changed ? null : read.etag)) {
        toast({ text: t("{{name}} is saved.", { name: file.name }) });
        onSaved(text);
        return;
      }
      setChanged(true);
    } catch (error) {
      setFailure(error as Failure);
    }
    setBusy(false);
  }
  return (
    <Modal opened onClose={onClose} size="xl" title={t("Edit {{name}}", { name: file.name })} closeButtonProps={{ "aria-label": t("Close") }} closeOnClickOutside={!unsaved} closeOnEscape={!unsaved}>
      <form className="stack" onSubmit={(event) => { event.preventDefault(); void save(); }}>
        <Textarea aria-label={t("Text of {{name}}", { name: file.name })} value={text} autosize minRows={12} maxRows={24} spellCheck={false} data-autofocus styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)", fontSize: 12 } }}
          onChange={(e) => setText(e.currentTarget.value)}
          error={size > mostText ? t("At most {{limit}} can be edited here.", { limit: bytes(mostText) }) : undefined} />
        {changed ? <p className="tone-wait" role="alert">{t("Somebody has changed the file since you opened it. Saving replaces that.")}</p> : null}
        <FailureNote failure={failure} what={t("Not saved")} />
        <div className="row" style={{ justifyContent: "flex-end" }}>
          <span className="dim">{bytes(size)}</span>
          <Button variant="default" onClick={onClose}>{unsaved ? t("Discard") : t("Close")}</Button>
          <Button type="submit" loading={busy} disabled={!unsaved || size > mostText}>{changed ? t("Save all the same") : t("Save")}</Button>
        </div>
      </form>
    </Modal>
  );
}
