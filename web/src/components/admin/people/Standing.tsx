import { Button, Checkbox } from "@mantine/core";
import { useState } from "react";
import { useAction } from "../../../hooks/useAction";
import { toast } from "../../../hooks/useToasts";
import { t } from "../../../i18n";
import { Confirm } from "../../Confirm";
import { FailureNote } from "../../Note";
import { Purge } from "./Purge";
import type { OneUser } from "./UserPanel";
import { may } from "./rights";
import { type Status, UpdateUser } from "./userdraft";

interface Props {
  user: OneUser;
  /** The list may show him elsewhere now, or no more. */
  onMoved: () => void;
  /** He is being removed. */
  onGone: () => void;
}

/** What may be done about a user's status, with what it does to him. */
export function Standing({ user, onMoved, onGone }: Props) {
  const { run, busy, failure, clear } = useAction(UpdateUser);
  const [asked, ask] = useState<"inactive" | "deleted" | null>(null);
  const [purging, purge] = useState(false);
  const waits = user.status === "before_verification";
  const [keep, setKeep] = useState(false);
  async function set(status: Status, said: string) {
    if (!(await run({ input: { id: user.id, status, keepCredentials: keep } }))) return;
    ask(null);
    toast({ text: said });
    onMoved();
  }
  const close = () => {
    ask(null);
    setKeep(false);
    clear();
  };
  return (
    <>
      {user.status === "active" ? (
        <Button variant="default" size="compact-sm" onClick={() => ask("inactive")}>
          {t("Deactivate")}
        </Button>
      ) : (
        <Button variant={user.status === "deleted" ? "default" : "filled"} size="compact-sm" loading={busy && !asked} onClick={() => void set("active", t("{{name}} is active.", { name: user.email }))}>
          {waits ? t("Approve") : t("Activate")}
        </Button>
      )}
      {user.status !== "deleted" && user.status !== "active" && may(user, "delete") ? (
        <Button variant="default" size="compact-sm" onClick={() => ask("deleted")}>
          {waits ? t("Refuse") : t("Delete")}
        </Button>
      ) : null}
      {(user.status === "inactive" || user.status === "deleted") && may(user, "delete") ? (
        <Button variant="default" size="compact-sm" onClick={() => purge(true)}>
          {t("Purge")}
        </Button>
      ) : null}
      {purging ? <Purge user={user} onClose={() => purge(false)} onGone={onGone} /> : null}
      {asked ? null : <FailureNote failure={failure} />}
      <Confirm opened={asked === "inactive"} title={t("Deactivate {{name}}?", { name: user.email })} action={t("Deactivate")} busy={busy} failure={failure}
        onConfirm={() => void set("inactive", t("{{name}} is inactive.", { name: user.email }))} onClose={close}>
        <p>{t("The user is logged out everywhere; all access tokens, keypairs and SSH keys end. Sessions run on, folders stay. You can activate the user again.")}</p>
        <Checkbox checked={keep} onChange={(e) => setKeep(e.currentTarget.checked)} label={t("Keep tokens and keys for when the user is active again")} />
      </Confirm>
      <Confirm opened={asked === "deleted"} title={waits ? t("Refuse {{name}}?", { name: user.email }) : t("Delete {{name}}?", { name: user.email })} action={waits ? t("Refuse") : t("Delete")} busy={busy} failure={failure}
        onConfirm={() => void set("deleted", t("{{name}} is deleted.", { name: user.email }))} onClose={close}>
        <p>{t("He no longer shows in lists, and cannot log in. His folders and his history stay, and you can bring him back under the status Deleted.")}</p>
      </Confirm>
    </>
  );
}
