import { Button, Select } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { useNow } from "../../../hooks/useNow";
import { t } from "../../../i18n";
import { Confirm } from "../../Confirm";
import { Conditions, Cordon } from "../../device/Cordon";
import { hasProblem } from "../../device/PluginNote";
import { slotsLine, when } from "../../format";
import { Status } from "../../Status";
import type { Option } from "../Filter";
import { type Column, Table } from "../Table";
import { AgentFields, type AgentRow, UpdateAgent } from "./agent";
import { CordonDialog } from "./CordonDialog";
import { DrainDialog } from "./DrainDialog";
import { PluginsDialog } from "./PluginsDialog";

const Undrain = graphql(
  `
  mutation UndrainAgent($input: UndrainAgentInput!) { undrainAgent(input: $input) { agent { ...AgentFields } } }
`,
  [AgentFields],
);

const Remove = graphql(
  `mutation DeleteAgent($input: DeleteAgentInput!) { deleteAgent(input: $input) { agent { ...AgentFields } } }`,
  [AgentFields],
);

interface Props {
  agents: AgentRow[];
  groups: Option[];
  /** Whether the viewer can change the agents. */
  editable: boolean;
}

export function AgentsTable({ agents, groups, editable }: Props) {
  const update = useAction(UpdateAgent, true);
  const undrain = useAction(Undrain, true);
  const remove = useAction(Remove);
  const [gone, setGone] = useState<AgentRow | null>(null);
  const [removing, setRemoving] = useState<AgentRow | null>(null);
  const [moved, setMoved] = useState<{ agent: AgentRow; to: string } | null>(null);
  const [closing, setClosing] = useState<AgentRow | null>(null);
  const [plugins, setPlugins] = useState<string | null>(null);
  const [draining, setDraining] = useState<AgentRow | null>(null);
  const now = useNow(
    agents.some((a) => a.drainDeadline && !a.drained),
    5000,
  );
  const bad = (a: AgentRow) => a.probes.filter((p) => !p.ok);
  const opened = agents.find((a) => a.id === plugins);
  const columns: Column<AgentRow>[] = [
    {
      head: t("Agent"),
      cell: (a) => (
        <>
          <b>{a.name}</b> <span className="dim">{a.version}</span>
        </>
      ),
    },
    {
      head: t("Status"),
      cell: (a) => (
        <div className="stack small">
          <Status status={a.status} />
          <Cordon agent={a} now={now} />
          <Conditions agent={a} />
        </div>
      ),
    },
    {
      head: t("In use / total"),
      cell: (a) => (
        <>
          {slotsLine(a.occupied) || t("nothing")} <span className="dim">/ {slotsLine(a.capacity)}</span>
        </>
      ),
    },
    {
      head: t("Resource group"),
      cell: (a) => (
        <Select
          aria-label={t("Resource group of {{name}}", { name: a.name })}
          w={140}
          value={a.resourceGroup.id}
          data={groups}
          disabled={!editable}
          onChange={(to) =>
            a.sessionsLeft > 0 && to
              ? setMoved({ agent: a, to })
              : void update.run({ input: { id: a.id, resourceGroup: to } })
          }
        />
      ),
    },
    {
      head: t("Host checks"),
      wide: true,
      cell: (a) => (
        <span
          title={bad(a)
            .map((p) => `${p.name}: ${p.detail}`)
            .join("\n")}
        >
          {bad(a).length === 0 ? (
            t("all passed")
          ) : (
            <span className="tone-wait">
              {bad(a)
                .map((p) => p.name)
                .join(", ")}
            </span>
          )}
        </span>
      ),
    },
    {
      head: t("Plugins"),
      wide: true,
      cell: (a) =>
        a.plugins.length === 0 ? (
          <span className="dim">{t("none")}</span>
        ) : (
          <Button
            variant="subtle"
            size="compact-xs"
            title={t("Plugins of {{name}}", { name: a.name })}
            onClick={() => setPlugins(a.id)}
          >
            <span className={a.plugins.some(hasProblem) ? "tone-wait" : undefined}>
              {a.plugins.map((p) => p.name).join(", ")}
            </span>
          </Button>
        ),
    },
    { head: t("Last seen"), wide: true, cell: (a) => <span className="dim nowrap">{when(a.lastSeenAt)}</span> },
  ];
  if (editable) {
    columns.push({
      head: t("Actions"),
      cell: (a) => (
        <div className="row" style={{ flexWrap: "nowrap" }}>
          {a.schedulable ? (
            <Button
              variant="default"
              size="compact-xs"
              aria-label={t("Cordon {{name}}", { name: a.name })}
              onClick={() => setClosing(a)}
            >
              {t("Cordon")}
            </Button>
          ) : null}
          {a.schedulable || a.drainDeadline ? null : (
            <Button
              variant="default"
              size="compact-xs"
              loading={update.busy}
              aria-label={t("Uncordon {{name}}", { name: a.name })}
              onClick={() => void update.run({ input: { id: a.id, schedulable: true } })}
            >
              {t("Uncordon")}
            </Button>
          )}
          {a.drainDeadline ? (
            <Button
              variant="default"
              size="compact-xs"
              loading={undrain.busy}
              aria-label={t("Cancel drain of {{name}}", { name: a.name })}
              onClick={() => void undrain.run({ input: { id: a.id } })}
            >
              {t("Cancel drain")}
            </Button>
          ) : null}
          <Button
            variant="default"
            size="compact-xs"
            aria-label={
              a.drainDeadline
                ? t("Edit the drain of {{name}}", { name: a.name })
                : t("Drain {{name}}", { name: a.name })
            }
            onClick={() => setDraining(a)}
          >
            {a.drainDeadline ? t("Edit") : t("Drain")}
          </Button>
          {a.status === "LOST" ? (
            <Button
              variant="subtle"
              color="red"
              size="compact-xs"
              aria-label={t("Remove {{name}}", { name: a.name })}
              onClick={() => {
                remove.clear();
                setGone(a);
              }}
            >
              {t("Remove")}
            </Button>
          ) : null}
          {a.status === "TERMINATED" ? null : (
            <Button
              variant="subtle"
              color="red"
              size="compact-xs"
              aria-label={t("Expel {{name}}", { name: a.name })}
              onClick={() => {
                remove.clear();
                setRemoving(a);
              }}
            >
              {t("Expel")}
            </Button>
          )}
        </div>
      ),
    });
  }
  return (
    <>
      <Table label={t("Agents")} rows={agents} columns={columns} />
      {closing ? <CordonDialog agent={closing} onClose={() => setClosing(null)} /> : null}
      <Confirm
        opened={gone !== null}
        title={t("Remove {{name}} permanently?", { name: gone?.name ?? "" })}
        action={t("Remove")}
        busy={remove.busy}
        failure={remove.failure}
        onClose={() => setGone(null)}
        onConfirm={async () => {
          if (gone && (await remove.run({ input: { id: gone.id } }))) setGone(null);
        }}
      >
        {t(
          "Its sessions fail, or are rescheduled if their resource group says so. If the agent reconnects, its remaining containers are stopped.",
        )}
      </Confirm>
      {opened ? <PluginsDialog agent={opened} editable={editable} onClose={() => setPlugins(null)} /> : null}
      <Confirm
        key={removing?.id}
        opened={removing !== null}
        title={t("Expel {{name}} from the cluster?", { name: removing?.name ?? "" })}
        action={t("Expel")}
        typed={removing?.name}
        busy={remove.busy}
        failure={remove.failure}
        onClose={() => setRemoving(null)}
        onConfirm={async () => {
          if (removing && (await remove.run({ input: { id: removing.id, expel: true } }))) setRemoving(null);
        }}
      >
        {t(
          "Its certificates are refused at once. Its sessions fail, or are rescheduled if their resource group says so. The machine needs a new join token to come back.",
        )}
      </Confirm>
      <Confirm
        opened={moved !== null}
        title={t("Sessions running on {{name}}: {{count}}", {
          name: moved?.agent.name ?? "",
          count: moved?.agent.sessionsLeft ?? 0,
        })}
        action={t("Move anyway")}
        busy={update.busy}
        failure={update.failure}
        onClose={() => {
          update.clear();
          setMoved(null);
        }}
        onConfirm={async () => {
          if (moved && (await update.run({ input: { id: moved.agent.id, resourceGroup: moved.to, force: true } })))
            setMoved(null);
        }}
      >
        {t(
          "They keep running and stay in the resource group {{group}}. To move the agent without them, drain it first.",
          { group: moved?.agent.resourceGroup.name ?? "" },
        )}
      </Confirm>
      {draining ? <DrainDialog agent={draining} onClose={() => setDraining(null)} /> : null}
    </>
  );
}
