import { Checkbox } from "@mantine/core";
import { useState } from "react";
import type { Failure } from "../../api/errors";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { Confirm } from "../Confirm";

const TerminateSession = graphql(`
  mutation TerminateSession($input: TerminateSessionInput!) {
    terminateSession(input: $input) { session { id version status terminatedAt } }
  }
`);

interface Props {
  sessions: { id: string; name: string; status: string }[];
  opened: boolean;
  onClose: () => void;
  onDone?: () => void;
}

/** Stops sessions after a confirmation that lists what will be lost. */
export function Terminate({ sessions, opened, onClose, onDone }: Props) {
  const { run, failure, clear } = useAction(TerminateSession);
  const [busy, setBusy] = useState(false);
  const [force, setForce] = useState(false);
  const waiting = sessions.filter((s) => s.status === "PENDING").length;

  async function confirm() {
    setBusy(true);
    let ended = 0;
    for (const { id } of sessions) if (await run({ input: { id, force } })) ended++;
    setBusy(false);
    if (ended < sessions.length) return;
    toast({
      text:
        ended === 1
          ? t("{{name}} is stopping.", { name: sessions[0]!.name })
          : t("{{count}} sessions are stopping.", { count: ended }),
    });
    close();
    onDone?.();
  }
  function close() {
    setForce(false);
    clear();
    onClose();
  }

  return (
    <Confirm
      opened={opened}
      title={
        sessions.length === 1 ? t("Stop this session?") : t("Stop {{count}} sessions?", { count: sessions.length })
      }
      action={t("Stop")}
      busy={busy}
      failure={failure as Failure | null}
      onConfirm={confirm}
      onClose={close}
    >
      <div className="stack small">
        <ul style={{ margin: 0, paddingLeft: 18 }}>
          {sessions.slice(0, 8).map((s) => (
            <li key={s.id}>
              <b>{s.name}</b>
            </li>
          ))}
          {sessions.length > 8 ? <li>{t("and {{count}} more", { count: sessions.length - 8 })}</li> : null}
        </ul>
        <p>
          {waiting === sessions.length
            ? t("The session has not started. It is removed from the queue.")
            : t("Running processes stop, and files outside mounted folders are lost. Folders stay.")}
        </p>
        <Checkbox
          label={t("Force stop, without a grace period")}
          checked={force}
          onChange={(e) => setForce(e.currentTarget.checked)}
        />
      </div>
    </Confirm>
  );
}
