import { Button } from "@mantine/core";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { lazy, Suspense, useState } from "react";
import { graphql, type ResultOf, type VariablesOf } from "../api/graphql";
import { FilterBox } from "../components/admin/Filter";
import { nodesOf } from "../components/admin/usePages";
import { when } from "../components/format";
import { Empty, FailureNote } from "../components/Note";
import { Status } from "../components/Status";
import { DeploymentParts, measured, rate } from "../components/serving/serving";
import { useDeploymentsChanged } from "../components/serving/useDeploymentsChanged";
import { useLiveQuery } from "../hooks/useLiveQuery";
import { useViewer } from "../hooks/useViewer";
import { t } from "../i18n";

const DeploySheet = lazy(() => import("../components/serving/DeploySheet"));

const DeploymentsQuery = graphql(
  `
  query Deployments($first: Int!, $where: DeploymentWhereInput) {
    deployments(first: $first, where: $where, orderBy: [{ field: NAME }]) {
      totalCount
      edges { node { ...DeploymentParts } }
    }
  }
`,
  [DeploymentParts],
);
type Where = NonNullable<VariablesOf<typeof DeploymentsQuery>["where"]>;
type Row = ResultOf<typeof DeploymentParts>;

const step = 50;
const most = 100;

/** The deployments that the viewer can see. */
export function Serving() {
  const search = useSearch({ from: "/frame/serving" });
  const navigate = useNavigate({ from: "/serving" });
  const viewer = useViewer();
  const [first, setFirst] = useState(step);
  const [deploying, setDeploying] = useState(false);
  const where: Where = {
    ...(search.q ? { nameContainsFold: search.q } : {}),
    ...(search.all ? {} : { ownerID: viewer.user.id }),
    ...(search.ended ? {} : { endedAtIsNil: true }),
  };
  const { data, failure, refetch, fetching } = useLiveQuery({ query: DeploymentsQuery, variables: { first, where } });
  useDeploymentsChanged(refetch);
  const rows = nodesOf(data?.deployments);
  const total = data?.deployments.totalCount ?? 0;
  const filtered = Boolean(search.q);
  const toggle = (key: "all" | "ended") =>
    void navigate({ search: (o) => ({ ...o, [key]: o[key] ? undefined : true }), replace: true });

  return (
    <>
      <div className="page-head">
        <h1>{t("Serving")}</h1>
        <span className="dim">{data ? total : null}</span>
        <Button className="push" variant="default" onClick={() => setDeploying(true)}>
          {t("Deploy a model")}
        </Button>
      </div>
      <div className="row">
        <FilterBox
          label={t("Filter by name")}
          value={search.q ?? ""}
          onChange={(q) => void navigate({ search: (o) => ({ ...o, q: q || undefined }), replace: true })}
        />
        <button
          type="button"
          className="chip push"
          aria-pressed={Boolean(search.ended)}
          onClick={() => toggle("ended")}
        >
          {t("Ended too")}
        </button>
        <button type="button" className="chip" aria-pressed={Boolean(search.all)} onClick={() => toggle("all")}>
          {t("All users")}
        </button>
      </div>
      <FailureNote failure={failure} what={t("The deployments could not be loaded")} />
      {data && rows.length === 0 ? (
        <div className="panel">
          {filtered ? (
            <Empty title={t("No deployment has this name")} />
          ) : (
            <Empty
              title={t("No deployments yet")}
              cli="berth deploy create NAME --image IMAGE --variant vllm --model FOLDER"
            >
              <span>
                {t(
                  "A deployment serves a model: it keeps replicas of an engine running behind one address, which programs use like the API of OpenAI.",
                )}
              </span>
              <span>
                {t("You need a folder with the model, and an image with an engine such as vLLM or llama.cpp.")}
              </span>
              <Button variant="light" onClick={() => setDeploying(true)}>
                {t("Deploy a model")}
              </Button>
              <span>{t("or from a terminal:")}</span>
            </Empty>
          )}
        </div>
      ) : null}
      {rows.length > 0 ? <DeploymentTable rows={rows} /> : null}
      {rows.length > 0 && total > rows.length ? (
        <div className="row" style={{ justifyContent: "center" }}>
          <span className="dim" role="status">
            {t("{{shown}} of {{total}}", { shown: rows.length, total })}
          </span>
          {first < most ? (
            <Button variant="default" loading={fetching} onClick={() => setFirst(most)}>
              {t("Show more")}
            </Button>
          ) : (
            <span className="dim">{t("Filter by name to find the others.")}</span>
          )}
        </div>
      ) : null}
      {deploying ? (
        <Suspense fallback={null}>
          <DeploySheet onClose={() => setDeploying(false)} />
        </Suspense>
      ) : null}
    </>
  );
}

function DeploymentTable({ rows }: { rows: Row[] }) {
  return (
    <div className="panel scroll-x">
      <table className="grid" aria-label={t("Deployments")}>
        <thead>
          <tr>
            <th scope="col">{t("Name")}</th>
            <th scope="col">{t("Status")}</th>
            <th scope="col" className="num">
              {t("Ready")}
            </th>
            <th scope="col" className="num">
              {t("Requests/s")}
            </th>
            <th scope="col" className="num">
              {t("First byte, p95")}
            </th>
            <th scope="col" className="roomy">
              {t("Owner")}
            </th>
            <th scope="col" className="roomy">
              {t("Created")}
            </th>
            <th scope="col" className="num">
              {t("Actions")}
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((d) => (
            <tr key={d.id}>
              <td className="clip">
                <Link to="/serving/$id" params={{ id: d.id }} className="row-name">
                  {d.name}
                </Link>
                {d.message ? <div className="dim clip">{d.message}</div> : null}
              </td>
              <td>
                <Status status={d.status} />
              </td>
              <td className="num nowrap">
                {d.ready.totalCount} / {d.wanted}
              </td>
              <td className="num">{d.load ? rate(d.load.requestsPerSecond) : "–"}</td>
              <td className="num nowrap">{measured(d.load?.firstByteP95)}</td>
              <td className="clip roomy">
                {d.owner.email} <span className="dim">{d.project.name}</span>
              </td>
              <td className="nowrap dim roomy">{when(d.createdAt)}</td>
              <td className="num">
                {d.endedAt ? null : (
                  <Link to="/chat" search={{ models: d.name }} aria-label={t("Chat with {{name}}", { name: d.name })}>
                    {t("Chat")}
                  </Link>
                )}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
