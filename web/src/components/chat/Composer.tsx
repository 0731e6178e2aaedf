import { Button, FileButton, Textarea } from "@mantine/core";
import { type ClipboardEvent, type DragEvent, type KeyboardEvent, type ReactNode, useRef, useState } from "react";
import type { Failure } from "../../api/errors";
import { t } from "../../i18n";
import { FailureNote } from "../Note";
import { Attachments } from "./Attachments";
import { type Attachment, attach, imageTypes, type Refusal } from "./attach";

/** Bytes of a prompt. */
const mostPrompt = 256 << 10;

interface Props {
  prompt: string;
  attachments: readonly Attachment[];
  onChange: (change: { prompt?: string; attachments?: Attachment[] }) => void;
  /** Why nothing can be sent; null: it can. */
  blocked: string | null;
  /** Prompts and answers are recorded for the owner of a model. */
  recorded: boolean;
  busy: boolean;
  failure: Failure | null;
  onSend: () => void;
  /** Stops all answers; null: none runs. */
  onStop: (() => void) | null;
  children?: ReactNode;
}

/** Reports whether a prompt can be sent. */
export const sendable = (prompt: string, attachments: readonly Attachment[]) =>
  (prompt.trim() !== "" || attachments.length > 0) && new TextEncoder().encode(prompt).length <= mostPrompt;

/** The field for the next prompt. Enter sends it, Shift+Enter begins a line. Files can be chosen, pasted or dropped. */
export function Composer(props: Props) {
  const { prompt, attachments, onChange, blocked, recorded, busy, failure, onSend, onStop, children } = props;
  const [refused, setRefused] = useState<Refusal[]>([]);
  const [over, setOver] = useState(false);
  const files = useRef(attachments);
  files.current = attachments;
  const ready = !blocked && !busy && sendable(prompt, attachments);

  async function add(list: readonly File[]) {
    if (list.length === 0) return;
    const { added, refused: no } = await attach(list, files.current);
    setRefused(no);
    if (added.length > 0) onChange({ attachments: [...files.current, ...added] });
  }
  function press(event: KeyboardEvent<HTMLTextAreaElement>) {
    if (event.key === "Escape") event.currentTarget.blur();
    // Enter also ends the input of a syllable in Korean, Japanese and Chinese.
    if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
    event.preventDefault();
    if (ready) onSend();
  }
  function paste(event: ClipboardEvent) {
    const list = [...event.clipboardData.files];
    if (list.length === 0) return;
    event.preventDefault();
    void add(list);
  }
  function drop(event: DragEvent) {
    event.preventDefault();
    setOver(false);
    void add([...event.dataTransfer.files]);
  }
  return (
    <form
      className={over ? "chat-composer drop-zone over" : "chat-composer drop-zone"}
      aria-label={t("Next prompt")}
      onSubmit={(event) => {
        event.preventDefault();
        if (ready) onSend();
      }}
      onDragOver={(event) => {
        event.preventDefault();
        setOver(true);
      }}
      onDragLeave={() => setOver(false)}
      onDrop={drop}
    >
      {refused.length > 0 ? (
        <div className="failure" role="alert">
          {refused.map((r, i) => (
            <div key={i}>{t(r.text, r.values)}</div>
          ))}
        </div>
      ) : null}
      <FailureNote failure={failure} what={t("The prompt was not sent")} />
      <Attachments
        files={attachments}
        onRemove={(at) => onChange({ attachments: attachments.filter((_, i) => i !== at) })}
      />
      {recorded ? <p className="dim">{t("The owner of a model in this chat records prompts and answers.")}</p> : null}
      <Textarea
        aria-label={t("Prompt")}
        placeholder={t("Ask something. Shift+Enter begins a new line.")}
        autosize
        minRows={1}
        maxRows={10}
        size="sm"
        autoFocus
        value={prompt}
        onKeyDown={press}
        onPaste={paste}
        onChange={(e) => onChange({ prompt: e.currentTarget.value })}
      />
      <div className="row">
        <FileButton
          multiple
          accept={`${imageTypes.join(",")},text/*,.md,.csv,.json,.yaml,.yml,.log,.py,.go,.ts,.js,.toml`}
          onChange={(list) => void add(list)}
          resetRef={undefined}
        >
          {(button) => (
            <Button {...button} variant="default">
              {t("Attach files")}
            </Button>
          )}
        </FileButton>
        {children}
        <span className="push row">
          {blocked && prompt !== "" ? <span className="dim">{blocked}</span> : null}
          {onStop ? (
            <Button variant="default" onClick={onStop}>
              {t("Stop all")}
            </Button>
          ) : null}
          <Button type="submit" disabled={!ready} loading={busy}>
            {t("Send")}
          </Button>
        </span>
      </div>
    </form>
  );
}
