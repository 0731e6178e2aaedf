import { Button, Modal, TextInput } from "@mantine/core";
import { useEffect, useState } from "react";
import type { Failure } from "../../api/errors";
import { t } from "../../i18n";
import { FailureNote } from "../Note";

interface Props {
  opened: boolean;
  title: string;
  action: string;
  initial: string;
  /** The state of the mutation that the dialog starts. */
  mutation: { busy: boolean; failure: Failure | null; clear: () => void };
  valid: (name: string) => boolean;
  onName: (name: string) => Promise<unknown>;
  onClose: () => void;
}

/** Asks for the name of a folder, a directory or a file. */
export function NameDialog({ opened, title, action, initial, mutation, valid, onName, onClose }: Props) {
  const [name, setName] = useState(initial);
  useEffect(() => setName(initial), [initial, opened]);
  const { busy, failure, clear } = mutation;
  function close() {
    clear();
    onClose();
  }
  return (
    <Modal opened={opened} onClose={close} title={title} closeButtonProps={{ "aria-label": t("Close") }}>
      <form
        className="stack"
        onSubmit={async (event) => {
          event.preventDefault();
          if (await onName(name)) close();
        }}
      >
        <TextInput
          label={t("Name")}
          value={name}
          data-autofocus
          onChange={(e) => setName(e.currentTarget.value)}
          error={name !== "" && !valid(name) ? t("This name is not allowed.") : undefined}
        />
        <FailureNote failure={failure} />
        <Button type="submit" loading={busy} disabled={!valid(name) || name === initial}>
          {action}
        </Button>
      </form>
    </Modal>
  );
}
