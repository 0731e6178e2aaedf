import { Button, Modal, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import type { Failure } from "../api/errors";
import { t } from "../i18n";
import { FailureNote } from "./Note";

interface Props {
  opened: boolean;
  title: string;
  /** Text that names the data that will be lost. */
  children: ReactNode;
  action: string;
  busy?: boolean;
  failure?: Failure | null;
  /** The text that the user must type to enable the button, for actions that cannot be undone. */
  typed?: string;
  onConfirm: () => void;
  onClose: () => void;
}

export function Confirm({ opened, title, children, action, busy, failure, typed, onConfirm, onClose }: Props) {
  const [text, setText] = useState("");
  function close() {
    setText("");
    onClose();
  }
  return (
    <Modal opened={opened} onClose={close} title={title} closeButtonProps={{ "aria-label": t("Close") }}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          onConfirm();
        }}
      >
        <div>{children}</div>
        {typed ? (
          <TextInput
            label={t("Type {{name}} to confirm", { name: typed })}
            value={text}
            onChange={(e) => setText(e.currentTarget.value)}
            data-autofocus
          />
        ) : null}
        <FailureNote failure={failure ?? null} />
        <div className="row" style={{ justifyContent: "flex-end" }}>
          <Button variant="default" onClick={close}>
            {t("Cancel")}
          </Button>
          <Button
            type="submit"
            color="red"
            loading={busy}
            disabled={typed !== undefined && text !== typed}
            {...(typed ? {} : { "data-autofocus": true })}
          >
            {action}
          </Button>
        </div>
      </form>
    </Modal>
  );
}
