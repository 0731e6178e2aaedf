import { Button } from "@mantine/core";
import { useEffect, useState } from "react";
import { type ResultOf, graphql } from "../../api/graphql";
import { Confirm } from "../../components/Confirm";
import { Status } from "../../components/Status";
import { FilterSelect } from "../../components/admin/Filter";
import { type Column, PagedTable } from "../../components/admin/Table";
import { Progress } from "../../components/admin/people/Progress";
import { usePages } from "../../components/admin/usePages";
import { duration, when } from "../../components/format";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";

const TaskFields = graphql(`fragment TaskFields on Task { id kind title status done total message attempt createdAt startedAt endedAt }`);
type Task = ResultOf<typeof TaskFields>;
const TasksQuery = graphql(`
  query Tasks($where: TaskWhereInput, $first: Int, $after: Cursor) {
    tasks(first: $first, after: $after, where: $where, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
      totalCount pageInfo { hasNextPage endCursor } edges { node { ...TaskFields } }
    }
  }
`, [TaskFields]);
const GoingOnQuery = graphql(`query GoingOn($ids: [ID!]!) { nodes(ids: $ids) { id ... on Task { ...TaskFields } } }`, [TaskFields]);
const CancelTask = graphql(`mutation CancelTask($input: CancelTaskInput!) { cancelTask(input: $input) { task { ...TaskFields } } }`, [TaskFields]);
const RetryTask = graphql(`mutation RetryTask($input: RetryTaskInput!) { retryTask(input: $input) { task { ...TaskFields } } }`, [TaskFields]);

const statuses = ["waiting", "running", "done", "failed", "cancelled"] as const;
const every = 2000;

/** Work that goes on by itself, and what came of it. */
export function Tasks() {
  const monitor = useViewer().user.role === "monitor";
  const [status, setStatus] = useState<(typeof statuses)[number]>();
  const pages = usePages({ query: TasksQuery, variables: { where: status ? { status } : null }, pick: (data) => data.tasks });
  const cancel = useAction(CancelTask);
  const retry = useAction(RetryTask, true);
  const [going, setGoing] = useState<Task | null>(null);

  // What goes on is looked at again and again; the list shows what was read.
  const live = pages.rows.filter((x) => x.status === "waiting" || x.status === "running").slice(0, 100).map((x) => x.id);
  const { refetch } = useLiveQuery({ query: GoingOnQuery, variables: { ids: live }, pause: live.length === 0 });
  useEffect(() => {
    if (live.length === 0) return;
    const timer = setInterval(refetch, every);
    return () => clearInterval(timer);
  });

  const columns: Column<Task>[] = [
    { head: t("Task"), cell: (x) => <><b>{x.title || x.kind}</b>{x.message ? <div className={x.status === "failed" ? "bad" : "dim"}>{x.message}</div> : null}</> },
    { head: t("Status"), cell: (x) => <><Status status={x.status} />{x.attempt > 1 && x.status !== "done" ? <div className="dim nowrap">{t("attempt {{n}}", { n: x.attempt })}</div> : null}</> },
    { head: t("Progress"), cell: (x) => <Progress done={x.done} total={x.total} label={x.title} /> },
    { head: t("Asked for"), wide: true, cell: (x) => <span className="dim nowrap">{when(x.createdAt)}</span> },
    { head: t("Took"), wide: true, cell: (x) => <span className="dim nowrap">{x.startedAt && x.endedAt ? duration(Date.parse(x.endedAt) - Date.parse(x.startedAt)) : ""}</span> },
    { head: "", num: true, cell: (x) => monitor ? null : x.status === "waiting" || x.status === "running" ? (
      <Button variant="subtle" color="red" size="compact-xs" aria-label={t("Cancel {{name}}", { name: x.title })} onClick={() => { cancel.clear(); setGoing(x); }}>{t("Cancel")}</Button>
    ) : x.status === "failed" || x.status === "cancelled" ? (
      <Button variant="subtle" size="compact-xs" aria-label={t("Run {{name}} again", { name: x.title })} onClick={() => void retry.run({ input: { id: x.id } })}>{t("Run again")}</Button>
    ) : null },
  ];
  return (
    <>
      <div className="page-head">
        <h1>{t("Tasks")}</h1>
        <span className="dim" role="status">{pages.total === null ? "" : pages.total}</span>
        <div className="push row">
          <Button variant="default" loading={pages.loading} onClick={pages.reload}>{t("Read again")}</Button>
        </div>
      </div>
      <div className="row">
        <FilterSelect label={t("Status")} any={t("All")} value={status} onChange={(v) => setStatus(statuses.find((s) => s === v))}
          options={[{ value: "waiting", label: t("Waiting") }, { value: "running", label: t("Running") }, { value: "done", label: t("Done") }, { value: "failed", label: t("Failed") }, { value: "cancelled", label: t("Cancelled") }]} />
      </div>
      <PagedTable label={t("Tasks")} pages={pages} columns={columns} empty={status ? t("No task matches") : t("No tasks")}>
        {status ? null : t("Long work, such as the purge of a user, shows here while it goes on and after.")}
      </PagedTable>
      <Confirm opened={going !== null} title={t("Cancel {{name}}?", { name: going?.title ?? "" })} action={t("Cancel it")} busy={cancel.busy} failure={cancel.failure} onClose={() => setGoing(null)}
        onConfirm={async () => { if (going && (await cancel.run({ input: { id: going.id } }))) setGoing(null); }}>
        <p>{t("It stops at its next step. What it has done stays; you can run it again from there.")}</p>
      </Confirm>
    </>
  );
}
