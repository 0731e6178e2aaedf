import { Button, Modal } from "@mantine/core";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { t } from "../../../i18n";
import { PluginNote } from "../../device/PluginNote";
import { FailureNote } from "../../Note";
import { AgentFields, type AgentRow } from "./agent";

const Restart = graphql(
  `
  mutation RestartPlugin($input: RestartPluginInput!) { restartPlugin(input: $input) { agent { ...AgentFields } } }
`,
  [AgentFields],
);

/** Shows the plugins of a machine with the results of their checks, and a button that restarts each plugin. */
export function PluginsDialog({
  agent,
  editable,
  onClose,
}: {
  agent: AgentRow;
  editable: boolean;
  onClose: () => void;
}) {
  const { run, busy, failure } = useAction(Restart);
  return (
    <Modal
      opened
      onClose={onClose}
      title={t("Plugins of {{name}}", { name: agent.name })}
      size="lg"
      closeButtonProps={{ "aria-label": t("Close") }}
    >
      <div className="stack">
        {agent.plugins.map((p) => (
          <div key={p.name} className="stack small">
            <PluginNote plugin={p} />
            {editable ? (
              <Button
                variant="default"
                size="compact-xs"
                loading={busy}
                style={{ alignSelf: "flex-start" }}
                aria-label={t("Restart plugin {{name}}", { name: p.name })}
                onClick={() => void run({ input: { id: agent.id, plugin: p.name } })}
              >
                {t("Restart")}
              </Button>
            ) : null}
          </div>
        ))}
        {editable ? (
          <p className="dim">
            {t(
              "Sessions keep their devices while a plugin restarts. New sessions wait until the restart has finished.",
            )}
          </p>
        ) : null}
        <FailureNote failure={failure} />
      </div>
    </Modal>
  );
}
