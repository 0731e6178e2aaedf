import { Button, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { Cli, Empty, FailureNote } from "../../components/Note";
import { Status } from "../../components/Status";
import { slotsLine, when } from "../../components/format";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";

const AgentsQuery = graphql(`
  query Agents {
    agents(first: 100, orderBy: [{ field: NAME, direction: ASC }]) {
      edges { node { id name status schedulable version address lastSeenAt capacity occupied resourceGroup { id name } probes { name ok detail } } }
    }
    resourceGroups(first: 100) { edges { node { id name } } }
  }
`);
const UpdateAgent = graphql(`
  mutation UpdateAgent($input: UpdateAgentInput!) { updateAgent(input: $input) { agent { id schedulable resourceGroup { id name } } } }
`);
const CreateJoinToken = graphql(`
  mutation CreateJoinToken($input: CreateJoinTokenInput!) { createJoinToken(input: $input) { command expiresAt } }
`);
const CreateGroup = graphql(`
  mutation CreateGroup($input: CreateResourceGroupInput!) { createResourceGroup(input: $input) { resourceGroup { id name } } }
`);

export function Agents() {
  const superadmin = useViewer().user.role === "superadmin";
  const { data, failure, refetch } = useLiveQuery({ query: AgentsQuery });
  const update = useAction(UpdateAgent, true);
  const join = useAction(CreateJoinToken, true);
  const group = useAction(CreateGroup, true);
  const [role, setRole] = useState<"agent" | "storage">("agent");
  const [token, setToken] = useState<{ command: string; expiresAt: string } | null>(null);
  const [name, setName] = useState("");
  const agents = (data?.agents.edges ?? []).flatMap((e) => (e?.node ? [e.node] : []));
  const groups = (data?.resourceGroups.edges ?? []).flatMap((e) => (e?.node ? [{ value: e.node.id, label: e.node.name }] : []));

  return (
    <>
      <div className="page-head">
        <h1>{t("Agents")}</h1>
        <form className="push row" onSubmit={async (event) => {
          event.preventDefault();
          if (!(await group.run({ input: { name: name.trim() } }))) return;
          setName("");
          refetch();
        }}>
          <TextInput aria-label={t("Name of a new resource group")} placeholder={t("New resource group")} value={name} disabled={!superadmin} onChange={(e) => setName(e.currentTarget.value)} />
          <Button type="submit" variant="default" loading={group.busy} disabled={!superadmin || !name.trim()}>
            {t("Create")}
          </Button>
        </form>
      </div>
      <FailureNote failure={failure} />
      <section className="panel pad stack small" aria-labelledby="join">
        <h2 id="join">{t("Let a machine join")}</h2>
        <div className="row">
          <Select aria-label={t("As what")} w={150} value={role} onChange={(r) => setRole(r as typeof role)} data={[{ value: "agent", label: t("agent") }, { value: "storage", label: t("storage proxy") }]} />
          <Button variant="light" loading={join.busy} disabled={!superadmin}
            onClick={async () => { const done = await join.run({ input: { role } }); if (done) setToken(done.createJoinToken); }}>
            {t("Make a join token")}
          </Button>
          <span className="dim">{t("It works once, and for an hour.")}</span>
        </div>
        {token ? (
          <div className="stack small" role="status">
            <Cli line={token.command} />
            <span className="dim">{t("Run it on the new machine before {{at}}.", { at: when(token.expiresAt) })}</span>
          </div>
        ) : null}
      </section>
      <div className="panel scroll-x">
        {data && agents.length === 0 ? <Empty title={t("No agent has joined yet")} /> : (
          <table className="grid">
            <thead>
              <tr>
                <th>{t("Agent")}</th>
                <th>{t("Status")}</th>
                <th>{t("Held of all")}</th>
                <th>{t("Resource group")}</th>
                <th>{t("Host checks")}</th>
                <th>{t("Last seen")}</th>
                <th><span className="dim">{t("Actions")}</span></th>
              </tr>
            </thead>
            <tbody>
              {agents.map((a) => {
                const bad = a.probes.filter((p) => !p.ok);
                return (
                  <tr key={a.id}>
                    <td>
                      <b>{a.name}</b> <span className="dim">{a.version}</span>
                    </td>
                    <td>
                      <Status status={a.status} /> {a.schedulable ? null : <span className="tone-wait">{t("closed")}</span>}
                    </td>
                    <td>
                      {slotsLine(a.occupied) || t("nothing")} <span className="dim">/ {slotsLine(a.capacity)}</span>
                    </td>
                    <td>
                      <Select aria-label={t("Resource group of {{name}}", { name: a.name })} w={140} value={a.resourceGroup.id} data={groups} disabled={!superadmin}
                        onChange={(resourceGroup) => void update.run({ input: { id: a.id, resourceGroup } })} />
                    </td>
                    <td title={bad.map((p) => `${p.name}: ${p.detail}`).join("\n")}>
                      {bad.length === 0 ? t("all good") : <span className="tone-wait">{bad.map((p) => p.name).join(", ")}</span>}
                    </td>
                    <td className="dim nowrap">{when(a.lastSeenAt)}</td>
                    <td style={{ width: 1 }}>
                      <Button variant="default" size="compact-xs" disabled={!superadmin} aria-label={a.schedulable ? t("Close {{name}}", { name: a.name }) : t("Open {{name}}", { name: a.name })}
                        onClick={() => void update.run({ input: { id: a.id, schedulable: !a.schedulable } })}>
                        {a.schedulable ? t("Close") : t("Open")}
                      </Button>
                    </td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        )}
      </div>
    </>
  );
}
