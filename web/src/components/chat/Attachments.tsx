import { Button, Modal } from "@mantine/core";
import { useState } from "react";
import { useQuery } from "urql";
import { t } from "../../i18n";
import { bytes } from "../format";
import { textOf } from "./attach";
import { AttachmentsQuery } from "./chat";
import { visible } from "./visible";

interface Shown {
  name: string;
  type: string;
  size: number;
  /** The content in Base64; null while it is loaded. */
  data: string | null;
}

/** Shows the files of a prompt as small pictures and names; a click shows the whole file. */
export function Attachments({ files, onRemove }: { files: readonly Shown[]; onRemove?: (at: number) => void }) {
  const [open, setOpen] = useState<Shown | null>(null);
  if (files.length === 0) return null;
  return (
    <ul className="chat-files" aria-label={t("Attached files")}>
      {files.map((f, i) => (
        <li key={i} className="chat-file">
          <button
            type="button"
            disabled={f.data === null}
            onClick={() => setOpen(f)}
            title={t("Show {{name}}", { name: visible(f.name) })}
          >
            {f.data !== null && f.type.startsWith("image/") ? (
              <img src={`data:${f.type};base64,${f.data}`} alt="" />
            ) : (
              <span className="chat-file-kind" aria-hidden="true">
                {f.type.startsWith("image/") ? "…" : "TXT"}
              </span>
            )}
            <span className="clip">{visible(f.name)}</span>
            <span className="dim nowrap">{bytes(f.size)}</span>
          </button>
          {onRemove ? (
            <Button
              variant="subtle"
              size="compact-xs"
              aria-label={t("Remove {{name}}", { name: visible(f.name) })}
              onClick={() => onRemove(i)}
            >
              ×
            </Button>
          ) : null}
        </li>
      ))}
      <Modal
        opened={open !== null}
        onClose={() => setOpen(null)}
        size="xl"
        title={open ? visible(open.name) : ""}
        closeButtonProps={{ "aria-label": t("Close") }}
      >
        {open?.data != null ? <Whole file={open} data={open.data} /> : null}
      </Modal>
    </ul>
  );
}

/** The most characters of a text file that are shown. */
const mostShown = 100_000;

function Whole({ file, data }: { file: Shown; data: string }) {
  if (file.type.startsWith("image/")) {
    return <img className="chat-whole" src={`data:${file.type};base64,${data}`} alt={visible(file.name)} />;
  }
  const text = textOf(data);
  return (
    <>
      <pre className="code" tabIndex={0} role="group" aria-label={t("Text")}>
        {visible(text.slice(0, mostShown))}
      </pre>
      {text.length > mostShown ? <p className="dim">{t("Only the beginning is shown.")}</p> : null}
    </>
  );
}

/** Shows the files of a turn. Their contents are loaded with the turn, not with the chat. */
export function TurnFiles({ turn, files }: { turn: string; files: readonly Omit<Shown, "data">[] }) {
  const [{ data }] = useQuery({ query: AttachmentsQuery, variables: { turn }, requestPolicy: "cache-first" });
  const loaded = data?.node && "attachments" in data.node ? data.node.attachments : [];
  return <Attachments files={files.map((f, i) => ({ ...f, data: loaded[i]?.data ?? null }))} />;
}
