import { Button, Checkbox } from "@mantine/core";
import { useState } from "react";
import { useAction } from "../../../hooks/useAction";
import { toast } from "../../../hooks/useToasts";
import { t } from "../../../i18n";
import { Confirm } from "../../Confirm";
import { FailureNote } from "../../Note";
import { Purge } from "./Purge";
import { can } from "./rights";
import type { OneUser } from "./user";
import { type Status, UpdateUser } from "./userdraft";

interface Props {
  user: OneUser;
  /** Called when the user may have to move or disappear in the list. */
  onMoved: () => void;
  /** Called when the purge of the user has started. */
  onGone: () => void;
}

/** Shows the possible changes of a user's status, with the effects of each on the user. */
export function UserStatus({ user, onMoved, onGone }: Props) {
  const { run, busy, failure, clear } = useAction(UpdateUser);
  const [confirming, setConfirming] = useState<"INACTIVE" | "DELETED" | null>(null);
  const [purging, purge] = useState(false);
  const waits = user.status === "BEFORE_VERIFICATION";
  const [keep, setKeep] = useState(false);
  async function set(status: Status, message: string) {
    if (!(await run({ input: { id: user.id, status, keepCredentials: keep } }))) return;
    setConfirming(null);
    toast({ text: message });
    onMoved();
  }
  const close = () => {
    setConfirming(null);
    setKeep(false);
    clear();
  };
  return (
    <>
      {user.status === "ACTIVE" ? (
        <Button variant="default" size="compact-sm" onClick={() => setConfirming("INACTIVE")}>
          {t("Deactivate")}
        </Button>
      ) : (
        <Button
          variant={user.status === "DELETED" ? "default" : "filled"}
          size="compact-sm"
          loading={busy && !confirming}
          onClick={() => void set("ACTIVE", t("{{name}} was activated.", { name: user.email }))}
        >
          {waits ? t("Approve") : t("Activate")}
        </Button>
      )}
      {user.status !== "DELETED" && user.status !== "ACTIVE" && can(user, "DELETE") ? (
        <Button variant="default" size="compact-sm" onClick={() => setConfirming("DELETED")}>
          {waits ? t("Reject") : t("Delete")}
        </Button>
      ) : null}
      {(user.status === "INACTIVE" || user.status === "DELETED") && can(user, "DELETE") ? (
        <Button variant="default" size="compact-sm" onClick={() => purge(true)}>
          {t("Purge")}
        </Button>
      ) : null}
      {purging ? <Purge user={user} onClose={() => purge(false)} onGone={onGone} /> : null}
      {confirming ? null : <FailureNote failure={failure} />}
      <Confirm
        opened={confirming === "INACTIVE"}
        title={t("Deactivate {{name}}?", { name: user.email })}
        action={t("Deactivate")}
        busy={busy}
        failure={failure}
        onConfirm={() => void set("INACTIVE", t("{{name}} was deactivated.", { name: user.email }))}
        onClose={close}
      >
        <p>
          {t(
            "The user is logged out everywhere, and all access tokens, keypairs and SSH keys are revoked. Running sessions are not affected, and folders stay. You can activate the user again.",
          )}
        </p>
        <Checkbox
          checked={keep}
          onChange={(e) => setKeep(e.currentTarget.checked)}
          label={t("Keep tokens and keys for a later activation")}
        />
      </Confirm>
      <Confirm
        opened={confirming === "DELETED"}
        title={waits ? t("Reject {{name}}?", { name: user.email }) : t("Delete {{name}}?", { name: user.email })}
        action={waits ? t("Reject") : t("Delete")}
        busy={busy}
        failure={failure}
        onConfirm={() => void set("DELETED", t("{{name}} was deleted.", { name: user.email }))}
        onClose={close}
      >
        <p>
          {t(
            "The user is hidden from lists and cannot log in. Their folders and history stay. To restore the user, filter the list by the status Deleted.",
          )}
        </p>
      </Confirm>
    </>
  );
}
