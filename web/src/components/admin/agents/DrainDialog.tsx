import { SegmentedControl, TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { t } from "../../../i18n";
import { FormDialog } from "../Form";
import { parseTime } from "../rules/amounts";
import { AgentFields, type AgentRow, drainActions } from "./agent";

const Drain = graphql(
  `
  mutation DrainAgent($input: DrainAgentInput!) { drainAgent(input: $input) { agent { ...AgentFields } } }
`,
  [AgentFields],
);

/** Drains a machine: no new session is placed on it, and at the deadline the remaining sessions move or end. */
export function DrainDialog({ agent, onClose }: { agent: AgentRow; onClose: () => void }) {
  const { run, busy, failure } = useAction(Drain);
  const [after, setAfter] = useState("1 h");
  const [action, setAction] = useState(agent.drainAction ?? "RESCHEDULE");
  const [reason, setReason] = useState(agent.cordonReason);
  const seconds = parseTime(after);
  async function submit() {
    if (seconds !== null && (await run({ input: { id: agent.id, after: seconds, action, reason: reason.trim() } })))
      onClose();
  }
  return (
    <FormDialog
      title={t("Drain {{name}}", { name: agent.name })}
      submit={t("Drain")}
      onClose={onClose}
      onSubmit={() => void submit()}
      busy={busy}
      failure={failure}
      disabled={seconds === null}
      danger={action === "TERMINATE"}
      fields={["after", "deadline", "action", "reason"]}
    >
      {(wrong) => (
        <>
          <p>
            {t("No new session starts on it, and the owners of its sessions are notified. It has {{count}} sessions.", {
              count: agent.sessionsLeft,
            })}
          </p>
          <TextInput
            label={t("Time until the deadline")}
            required
            data-autofocus
            description={t("Such as 30min, 2h or 1d. Enter 0 for no delay.")}
            value={after}
            error={
              wrong.after ??
              wrong.deadline ??
              (seconds === null ? t("Enter a time such as 10min, 12h or 7d.") : undefined)
            }
            onChange={(e) => setAfter(e.currentTarget.value)}
          />
          <fieldset className="legendless">
            <legend>{t("Sessions left at the deadline")}</legend>
            <SegmentedControl
              aria-label={t("Sessions left at the deadline")}
              value={action}
              onChange={(v) => setAction(v as typeof action)}
              data={drainActions.map((a) => ({ value: a.value, label: t(a.label) }))}
            />
            <p className="dim">{drainActions.filter((a) => a.value === action).map((a) => t(a.help))}</p>
          </fieldset>
          <TextInput
            label={t("Reason")}
            description={t("Owners of its sessions can read the reason.")}
            maxLength={200}
            value={reason}
            error={wrong.reason}
            onChange={(e) => setReason(e.currentTarget.value)}
          />
        </>
      )}
    </FormDialog>
  );
}
