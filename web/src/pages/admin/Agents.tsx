import { Button, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { useSubscription } from "urql";
import { graphql } from "../../api/graphql";
import { AgentsTable } from "../../components/admin/agents/AgentsTable";
import { AgentFields } from "../../components/admin/agents/agent";
import { EvictionsNote } from "../../components/admin/agents/EvictionsNote";
import { ManagersTable } from "../../components/admin/agents/ManagersTable";
import { when } from "../../components/format";
import { Cli, Empty, FailureNote } from "../../components/Note";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { word } from "../../words";

const AgentsQuery = graphql(
  `
  query Agents {
    agents(first: 100, orderBy: [{ field: NAME, direction: ASC }]) {
      edges { node { ...AgentFields } }
    }
    resourceGroups(first: 100) { edges { node { id name } } }
  }
`,
  [AgentFields],
);
const AgentChanged = graphql(`subscription AgentCordons { agentChanged { ...AgentFields } }`, [AgentFields]);
const CreateJoinToken = graphql(`
  mutation CreateJoinToken($input: CreateJoinTokenInput!) { createJoinToken(input: $input) { command expiresAt } }
`);
const CreateGroup = graphql(`
  mutation CreateGroup($input: CreateResourceGroupInput!) {
    createResourceGroup(input: $input) { resourceGroup { id name } }
  }
`);

export function Agents() {
  const superadmin = useViewer().user.role === "SUPERADMIN";
  const { data, failure, refetch } = useLiveQuery({ query: AgentsQuery });
  useSubscription({ query: AgentChanged });
  const join = useAction(CreateJoinToken, true);
  const group = useAction(CreateGroup, true);
  const [role, setRole] = useState<"AGENT" | "STORAGE">("AGENT");
  const [token, setToken] = useState<{ command: string; expiresAt: string } | null>(null);
  const [name, setName] = useState("");
  const agents = (data?.agents.edges ?? []).flatMap((e) => (e?.node ? [e.node] : []));
  const groups = (data?.resourceGroups.edges ?? []).flatMap((e) =>
    e?.node ? [{ value: e.node.id, label: e.node.name }] : [],
  );

  return (
    <>
      <div className="page-head">
        <h1>{t("Agents")}</h1>
        <form
          className="push row"
          onSubmit={async (event) => {
            event.preventDefault();
            if (!(await group.run({ input: { name: name.trim() } }))) return;
            setName("");
            refetch();
          }}
        >
          <TextInput
            aria-label={t("Name of a new resource group")}
            placeholder={t("New resource group")}
            value={name}
            disabled={!superadmin}
            onChange={(e) => setName(e.currentTarget.value)}
          />
          <Button type="submit" variant="default" loading={group.busy} disabled={!superadmin || !name.trim()}>
            {t("Create")}
          </Button>
        </form>
      </div>
      <FailureNote failure={failure} />
      {superadmin ? <EvictionsNote /> : null}
      <section className="panel pad stack small" aria-labelledby="join">
        <h2 id="join">{t("Add a machine")}</h2>
        <div className="row">
          <Select
            aria-label={t("Role of the machine")}
            w={150}
            value={role}
            onChange={(r) => setRole(r as typeof role)}
            data={[
              { value: "AGENT", label: word("NodeRole", "AGENT") },
              { value: "STORAGE", label: word("NodeRole", "STORAGE") },
            ]}
          />
          <Button
            variant="light"
            loading={join.busy}
            disabled={!superadmin}
            onClick={async () => {
              const done = await join.run({ input: { role } });
              if (done) setToken(done.createJoinToken);
            }}
          >
            {t("Create a join token")}
          </Button>
          <span className="dim">{t("Single use, valid for one hour.")}</span>
        </div>
        {token ? (
          <div className="stack small" role="status">
            <Cli line={token.command} />
            <span className="dim">
              {t("Run this command on the new machine before {{at}}.", { at: when(token.expiresAt) })}
            </span>
          </div>
        ) : null}
      </section>
      {data && agents.length === 0 ? (
        <div className="panel">
          <Empty title={t("No agent has joined yet")} />
        </div>
      ) : null}
      {agents.length > 0 ? <AgentsTable agents={agents} groups={groups} editable={superadmin} /> : null}
      {superadmin ? <ManagersTable /> : null}
    </>
  );
}
