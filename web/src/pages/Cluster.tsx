import { SegmentedControl, TextInput } from "@mantine/core";
import { useDebouncedCallback, useThrottledValue } from "@mantine/hooks";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { useSubscription } from "urql";
import { fromGraphQL } from "../api/errors";
import { type FragmentOf, graphql, type ResultOf } from "../api/graphql";
import { AgentCard } from "../components/device/AgentCard";
import { AgentTable } from "../components/device/AgentTable";
import { Leaderless } from "../components/frame/Leaderless";
import { Empty, FailureNote } from "../components/Note";
import { useLiveQuery } from "../hooks/useLiveQuery";
import { administers, useViewer } from "../hooks/useViewer";
import { t } from "../i18n";

const AgentParts = graphql(`
  fragment AgentParts on Agent {
    id name status schedulable cordonReason drainDeadline drainAction drained sessionsLeft
    conditions { type status reason since } version architecture zone lastSeenAt
    resourceGroup { id name }
    devices {
      id deviceId plugin vendor model pciAddress capacity health healthMessage allocatable rejectReasons parent { id }
      holders { slot amount since mine session { id name } }
    }
    plugins { name version state message restarts checks { name level text } }
    stats { name deviceId value unit quality }
  }
`);

// Reads only the list of agents. Their devices come from the subscription, which starts with the current state of each
// agent. One query for everything would exceed the server's complexity limit.
const ClusterQuery = graphql(`
  query Cluster {
    agents(first: 100, orderBy: [{ field: NAME, direction: ASC }]) { totalCount edges { node { id name } } }
  }
`);

const AgentChanged = graphql(`subscription AgentChanged { agentChanged { ...AgentParts } }`, [AgentParts]);

type Known = ReadonlyMap<string, FragmentOf<typeof AgentParts>>;

/** Milliseconds between two renderings, however often agents report. */
const renderInterval = 250;

export function Cluster() {
  const { view } = useSearch({ from: "/frame/cluster" });
  const navigate = useNavigate({ from: "/cluster" });
  const admin = administers(useViewer());
  const [typed, setTyped] = useState("");
  const { data, failure, refetch } = useLiveQuery({ query: ClusterQuery });
  const all = (data?.agents.edges ?? []).flatMap((e) => (e?.node ? [e.node] : []));
  const again = useDebouncedCallback(refetch, { delay: 500, maxWait: 500 });
  const [{ data: newest, error }] = useSubscription<ResultOf<typeof AgentChanged>, Known>(
    { query: AgentChanged },
    (known = new Map(), { agentChanged: agent }) => {
      if (data && !all.some((a) => a.id === agent.id)) again();
      return new Map(known).set(agent.id, agent);
    },
  );
  const known = useThrottledValue(newest, renderInterval);
  const agents = all
    .filter((a) => a.name.toLowerCase().includes(typed.trim().toLowerCase()))
    .flatMap((a) => known?.get(a.id) ?? []);

  return (
    <>
      <div className="page-head">
        <h1>{t("Cluster")}</h1>
        <span className="dim">{data ? t("{{count}} machines", { count: data.agents.totalCount }) : null}</span>
        <div className="push row">
          <TextInput
            data-filter
            placeholder={t("Filter by name  /")}
            aria-label={t("Filter by name")}
            value={typed}
            w={200}
            onChange={(e) => setTyped(e.currentTarget.value)}
          />
          <SegmentedControl
            aria-label={t("View")}
            value={view ?? "map"}
            onChange={(v) => void navigate({ search: { view: v === "map" ? undefined : v }, replace: true })}
            data={[
              { value: "map", label: t("Map") },
              { value: "table", label: t("Table") },
            ]}
          />
        </div>
      </div>
      <Legend />
      <Leaderless />
      <FailureNote
        failure={failure ?? (error ? fromGraphQL(error) : null)}
        what={t("The machines could not be loaded")}
      />
      {data && all.length === 0 ? (
        <div className="panel">
          <Empty title={t("No machine has joined yet")} cli={admin ? "berth agent join" : undefined}>
            {admin ? (
              <Link to="/admin/agents">{t("Create a join token")}</Link>
            ) : (
              t("An administrator must add a machine first.")
            )}
          </Empty>
        </div>
      ) : null}
      {view === "table" ? (
        <AgentTable agents={agents} />
      ) : (
        <div className="agents">
          {agents.map((a) => (
            <AgentCard key={a.id} agent={a} />
          ))}
        </div>
      )}
    </>
  );
}

function Legend() {
  return (
    <div className="legend" aria-label={t("Legend")} role="group">
      <span>
        <i className="part mine" /> {t("yours")}
      </span>
      <span>
        <i className="part known" /> {t("other users")}
      </span>
      <span>
        <i className="part hidden" /> {t("other users (hidden)")}
      </span>
      <span>
        <i className="tide" /> {t("measured utilization")}
      </span>
      <span>
        <i className="sick" /> {t("unhealthy")}
      </span>
      <span>
        <i className="rejected" /> {t("not schedulable")}
      </span>
      <span>{t("The height of a segment is the share of the device in use.")}</span>
    </div>
  );
}
