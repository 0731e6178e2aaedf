import { TextInput } from "@mantine/core";
import { useState } from "react";
import { useAction } from "../../../hooks/useAction";
import { t } from "../../../i18n";
import { FormDialog } from "../Form";
import { type AgentRow, UpdateAgent } from "./agent";

/** Cordons a machine, with a reason that users can read. */
export function CordonDialog({ agent, onClose }: { agent: AgentRow; onClose: () => void }) {
  const { run, busy, failure } = useAction(UpdateAgent);
  const [reason, setReason] = useState("");
  async function submit() {
    if (await run({ input: { id: agent.id, schedulable: false, cordonReason: reason.trim() } })) onClose();
  }
  return (
    <FormDialog
      title={t("Cordon {{name}}", { name: agent.name })}
      submit={t("Cordon")}
      onClose={onClose}
      onSubmit={() => void submit()}
      busy={busy}
      failure={failure}
      fields={["cordonReason"]}
    >
      {(wrong) => (
        <>
          <p>{t("No new session starts on it. Running sessions are not affected.")}</p>
          <TextInput
            label={t("Reason")}
            data-autofocus
            description={t("Everyone who sees the agent can read the reason.")}
            maxLength={200}
            value={reason}
            error={wrong.cordonReason}
            onChange={(e) => setReason(e.currentTarget.value)}
          />
        </>
      )}
    </FormDialog>
  );
}
