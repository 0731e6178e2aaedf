import { Button, TextInput } from "@mantine/core";
import { useDebouncedCallback, useDebouncedValue, useDisclosure } from "@mantine/hooks";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { graphql, type VariablesOf } from "../api/graphql";
import { nodesOf } from "../components/admin/usePages";
import { useSessionApps } from "../components/app/useSessionApps";
import { Empty, FailureNote } from "../components/Note";
import { ArraysQuery } from "../components/session/arrays";
import { IdleParts } from "../components/session/Idle";
import { SessionTable } from "../components/session/SessionTable";
import { Terminate } from "../components/session/Terminate";
import { ended } from "../components/session/timeline";
import { useLaunch } from "../hooks/useLaunch";
import { useLiveQuery } from "../hooks/useLiveQuery";
import { useSessionChanges } from "../hooks/useSessionChanges";
import { useViewer } from "../hooks/useViewer";
import { t } from "../i18n";

const SessionsQuery = graphql(
  `
  query Sessions($first: Int!, $where: SessionWhereInput) {
    sessions(first: $first, where: $where, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
      totalCount
      edges {
        node {
          id version name type status result exitCode slots tags createdAt startedAt terminatedAt
          image { id name }
          owner { id email }
          ...IdleParts
        }
      }
    }
  }
`,
  [IdleParts],
);

type Where = NonNullable<VariablesOf<typeof SessionsQuery>["where"]>;

const over = ["TERMINATED", "CANCELLED", "ERROR"] as const;

const shows: { key: string; label: string; where: Where }[] = [
  { key: "all", label: "All", where: {} },
  { key: "active", label: "Active", where: { statusNotIn: [...over] } },
  { key: "queued", label: "Pending", where: { status: "PENDING" } },
  { key: "RUNNING", label: "Running", where: { status: "RUNNING" } },
  { key: "ended", label: "Ended", where: { statusIn: [...over] } },
];

const step = 50;
const pageSize = 100;

export function Sessions() {
  const search = useSearch({ from: "/frame/sessions" });
  const navigate = useNavigate({ from: "/sessions" });
  const viewer = useViewer();
  const launch = useLaunch();
  const [typed, setTyped] = useState(search.q ?? "");
  const [q] = useDebouncedValue(typed, 200);
  const [first, setFirst] = useState(step);
  const [picked, setPicked] = useState<Set<string>>(new Set());
  const [ending, ask] = useDisclosure(false);

  useEffect(() => {
    void navigate({ search: (s) => ({ ...s, q: q || undefined }), replace: true });
  }, [q, navigate]);

  const show = shows.find((s) => s.key === search.show) ?? shows[0]!;
  const where: Where = {
    ...show.where,
    ...(q ? { nameContainsFold: q } : {}),
    ...(search.all ? {} : { ownerID: viewer.user.id }),
    ...(search.tag ? { tag: search.tag ?? "" } : {}),
    ...(search.array ? { arrayID: search.array } : { arrayIDIsNil: true }),
  };
  const live = show.key === "all" ? undefined : show.key !== "ended";
  const arrays = useLiveQuery({
    query: ArraysQuery,
    variables: {
      first,
      where: {
        ...(q ? { nameContainsFold: q } : {}),
        ...(search.all ? {} : { ownerID: viewer.user.id }),
        ...(search.tag ? { tag: search.tag } : {}),
        ...(live === undefined ? {} : { live }),
        ...(search.array ? { id: search.array } : {}),
      },
    },
  });
  const folded = search.array ? [] : nodesOf(arrays.data?.sessionArrays);
  const { data, failure, refetch } = useLiveQuery({ query: SessionsQuery, variables: { first, where } });
  const rows = (data?.sessions.edges ?? []).flatMap((e) => (e?.node ? [e.node] : []));

  const apps = useSessionApps(rows.filter((r) => r.status === "RUNNING").map((r) => r.id));

  // Pushed changes update the visible rows. Only a new or ended session refetches the list.
  const again = useDebouncedCallback(
    () => {
      refetch();
      arrays.refetch();
    },
    { delay: 300, maxWait: 300 },
  );
  const known = new Map(rows.map((r) => [r.id, r.status]));
  useSessionChanges((change) => {
    const here = known.has(change.id);
    if (!here || show.key !== "all") again();
  });

  const chosen = rows.filter((r) => picked.has(r.id) && !ended(r.status));
  const filtered = Boolean(q) || Boolean(search.tag) || Boolean(search.array) || show.key !== "all";

  return (
    <>
      <div className="page-head">
        <h1>{t("Sessions")}</h1>
        <span className="dim">{data ? data.sessions.totalCount : null}</span>
        <div className="push row">
          <Link to="/templates">{t("Templates")}</Link>
          {chosen.length > 0 ? (
            <Button variant="outline" color="red" onClick={ask.open}>
              {t("Stop selected ({{count}})", { count: chosen.length })}
            </Button>
          ) : null}
        </div>
      </div>
      <div className="row">
        <div className="chips" role="group" aria-label={t("Filter by status")}>
          {shows.map((s) => (
            <button
              key={s.key}
              type="button"
              className="chip"
              aria-pressed={s === show}
              onClick={() => void navigate({ search: (o) => ({ ...o, show: s.key === "all" ? undefined : s.key }) })}
            >
              {t(s.label)}
            </button>
          ))}
        </div>
        <TextInput
          data-filter
          placeholder={t("Filter by name  /")}
          aria-label={t("Filter by name")}
          value={typed}
          w={220}
          onChange={(e) => setTyped(e.currentTarget.value)}
        />
        {(["tag", "array"] as const).map((kind) =>
          search[kind] ? (
            <button
              key={kind}
              type="button"
              className="chip"
              aria-pressed
              title={t("Remove the filter")}
              onClick={() => void navigate({ search: (o) => ({ ...o, [kind]: undefined }) })}
            >
              {kind === "tag"
                ? t("Tag {{tag}}", { tag: search.tag ?? "" })
                : t("Array {{name}}", { name: nodesOf(arrays.data?.sessionArrays)[0]?.name ?? "" })}{" "}
              <span aria-hidden="true">×</span>
            </button>
          ) : null,
        )}
        <button
          type="button"
          className="chip push"
          aria-pressed={Boolean(search.all)}
          onClick={() => void navigate({ search: (o) => ({ ...o, all: o.all ? undefined : true }) })}
        >
          {t("All users")}
        </button>
      </div>
      <FailureNote failure={failure} what={t("The sessions could not be loaded")} />
      {rows.length + folded.length > 0 ? (
        <SessionTable
          rows={rows}
          picked={picked}
          onPick={setPicked}
          owners={Boolean(search.all)}
          apps={apps}
          arrays={folded}
        />
      ) : null}
      {data && rows.length + folded.length === 0 ? (
        <div className="panel">
          {filtered ? (
            <Empty title={t("No session matches")}>
              <span>{t("Remove a filter to see more.")}</span>
            </Empty>
          ) : (
            <Empty title={t("No sessions yet")} cli="berth run IMAGE -- python3 -c 'print(42)'">
              <span>{t("A session is a container of your own with the resources that you request.")}</span>
              <Button variant="light" onClick={() => launch()}>
                {t("Launch the first session")}
              </Button>
              <span>{t("or from a terminal:")}</span>
            </Empty>
          )}
        </div>
      ) : null}
      {data && data.sessions.totalCount > rows.length && first < pageSize ? (
        <Button variant="default" style={{ alignSelf: "center" }} onClick={() => setFirst(first + step)}>
          {t("Show more")}
        </Button>
      ) : null}
      <Terminate sessions={chosen} opened={ending} onClose={ask.close} onDone={() => setPicked(new Set())} />
    </>
  );
}
