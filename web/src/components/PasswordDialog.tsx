import { Button, Modal, PasswordInput } from "@mantine/core";
import { useState } from "react";
import { byField } from "../api/errors";
import { graphql } from "../api/graphql";
import { useAction } from "../hooks/useAction";
import { toast } from "../hooks/useToasts";
import { t } from "../i18n";
import { FailureNote } from "./Note";

const ChangePassword = graphql(`
  mutation ChangePassword($input: ChangePasswordInput!) {
    changePassword(input: $input) { viewer { initialPassword user { id } } }
  }
`);

export const shortest = 10;

export function PasswordDialog({ opened, onClose, onChanged }: { opened: boolean; onClose: () => void; onChanged: () => void }) {
  const [current, setCurrent] = useState("");
  const [next, setNext] = useState("");
  const [again, setAgain] = useState("");
  const { run, busy, failure, clear } = useAction(ChangePassword);
  const { field, rest } = byField(failure, ["current", "new"]);
  const differs = again !== "" && again !== next;

  function close() {
    setCurrent("");
    setNext("");
    setAgain("");
    clear();
    onClose();
  }

  async function submit(event: React.FormEvent) {
    event.preventDefault();
    if (!(await run({ input: { current, new: next } }))) return;
    toast({ text: t("The password is changed. Other logins have ended.") });
    onChanged();
    close();
  }

  return (
    <Modal opened={opened} onClose={close} title={<h2>{t("Change password")}</h2>} closeButtonProps={{ "aria-label": t("Close") }}>
      <form className="stack" onSubmit={submit}>
        <PasswordInput label={t("Present password")} autoComplete="current-password" required value={current}
          onChange={(e) => setCurrent(e.currentTarget.value)} error={field.current} data-autofocus />
        <PasswordInput label={t("New password")} description={t("At least {{count}} characters", { count: shortest })} minLength={shortest}
          autoComplete="new-password" required value={next} onChange={(e) => setNext(e.currentTarget.value)} error={field.new} />
        <PasswordInput label={t("New password, again")} autoComplete="new-password" required value={again}
          onChange={(e) => setAgain(e.currentTarget.value)} error={differs ? t("This is not the same.") : undefined} />
        <FailureNote failure={rest} />
        <Button type="submit" loading={busy} disabled={!current || next.length < shortest || next !== again}>
          {t("Change password")}
        </Button>
      </form>
    </Modal>
  );
}
