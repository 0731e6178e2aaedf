import { Button } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { FilterSelect } from "../../components/admin/Filter";
import { hasPermission } from "../../components/admin/nav";
import { type Column, PagedTable } from "../../components/admin/Table";
import { usePages } from "../../components/admin/usePages";
import { duration, when } from "../../components/format";
import { Status } from "../../components/Status";
import { Progress } from "../../components/task/Progress";
import { TaskButtons } from "../../components/task/TaskButtons";
import { isUnfinished, type Task, TaskFields, usePolledTasks } from "../../components/task/task";
import { administers, useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { stateWord, taskWord } from "../../words";

const TasksQuery = graphql(
  `
  query Tasks($where: TaskWhereInput, $first: Int, $after: Cursor) {
    tasks(first: $first, after: $after, where: $where, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
      totalCount pageInfo { hasNextPage endCursor } edges { node { ...TaskFields } }
    }
  }
`,
  [TaskFields],
);
const statuses = ["WAITING", "RUNNING", "DONE", "FAILED", "CANCELLED"] as const;

/** Lists background tasks and their results. */
export function Tasks() {
  const viewer = useViewer();
  const changes = administers(viewer) || hasPermission(viewer, "UPDATE", "TASK");
  const [status, setStatus] = useState<(typeof statuses)[number]>();
  const pages = usePages({
    query: TasksQuery,
    variables: { where: status ? { status } : null },
    pick: (data) => data.tasks,
  });
  usePolledTasks(pages.rows.filter(isUnfinished).map((x) => x.id));

  const columns: Column<Task>[] = [
    {
      head: t("Task"),
      cell: (x) => (
        <>
          <b>{x.title || taskWord(x.kind)}</b>
          {x.message ? <div className={x.status === "FAILED" ? "bad" : "dim"}>{x.message}</div> : null}
        </>
      ),
    },
    {
      head: t("Status"),
      cell: (x) => (
        <>
          <Status status={x.status} />
          {x.attempt > 1 && x.status !== "DONE" ? (
            <div className="dim nowrap">{t("attempt {{n}}", { n: x.attempt })}</div>
          ) : null}
        </>
      ),
    },
    { head: t("Progress"), cell: (x) => <Progress task={x} /> },
    { head: t("Requested"), wide: true, cell: (x) => <span className="dim nowrap">{when(x.createdAt)}</span> },
    {
      head: t("Duration"),
      wide: true,
      cell: (x) => (
        <span className="dim nowrap">
          {x.startedAt && x.endedAt ? duration(Date.parse(x.endedAt) - Date.parse(x.startedAt)) : ""}
        </span>
      ),
    },
    { head: "", num: true, cell: (x) => (changes ? <TaskButtons task={x} /> : null) },
  ];
  return (
    <>
      <div className="page-head">
        <h1>{t("Tasks")}</h1>
        <span className="dim" role="status">
          {pages.total === null ? "" : pages.total}
        </span>
        <div className="push row">
          <Button variant="default" loading={pages.loading} onClick={pages.reload}>
            {t("Refresh")}
          </Button>
        </div>
      </div>
      <div className="row">
        <FilterSelect
          label={t("Status")}
          any={t("All")}
          value={status}
          onChange={(v) => setStatus(statuses.find((s) => s === v))}
          options={[
            { value: "WAITING", label: stateWord("WAITING") },
            { value: "RUNNING", label: stateWord("RUNNING") },
            { value: "DONE", label: stateWord("DONE") },
            { value: "FAILED", label: stateWord("FAILED") },
            { value: "CANCELLED", label: stateWord("CANCELLED") },
          ]}
        />
      </div>
      <PagedTable
        label={t("Tasks")}
        pages={pages}
        columns={columns}
        empty={status ? t("No task matches") : t("No tasks")}
      >
        {status ? null : t("Long-running work, such as purging a user, is listed here while it runs and afterwards.")}
      </PagedTable>
    </>
  );
}
