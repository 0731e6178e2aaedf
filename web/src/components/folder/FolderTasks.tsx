import { Button } from "@mantine/core";
import { useState } from "react";
import { useSubscription } from "urql";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { t } from "../../i18n";
import { Confirm } from "../Confirm";
import { Progress } from "../admin/people/Progress";
import { type Task, TaskFields, goesOn } from "../admin/people/task";
import { bytes } from "../format";

const TaskMoved = graphql(`subscription TaskMoved($subject: ID) { taskChanged(subject: $subject) { ...TaskFields } }`, [TaskFields]);
const CancelWork = graphql(`mutation CancelWork($input: CancelTaskInput!) { cancelTask(input: $input) { task { ...TaskFields } } }`, [TaskFields]);
const RetryWork = graphql(`mutation RetryWork($input: RetryTaskInput!) { retryTask(input: $input) { task { ...TaskFields } } }`, [TaskFields]);

/** Keeps the tasks about one folder, or about any, as they are; tells of each that ends. */
export function useTasksMove(subject: string | null, ended: () => void) {
  useSubscription({ query: TaskMoved, variables: { subject } }, (_, change) => {
    if (!goesOn(change.taskChanged)) ended();
    return change;
  });
}

/** Long work on one folder: how far it is, with the way to end or to repeat it. */
export function FolderTasks({ tasks }: { tasks: Task[] }) {
  const cancel = useAction(CancelWork);
  const retry = useAction(RetryWork, true);
  const [going, setGoing] = useState<Task | null>(null);
  const shown = tasks.filter((x) => goesOn(x) || x.status === "failed");
  return (
    <>
      {shown.map((x) => (
        <div key={x.id} className="row" style={{ flexWrap: "wrap" }}>
          <span>{x.title || x.kind}</span>
          {x.status === "failed" ? <span className="bad">{x.message || t("failed")}</span> : <Amounts task={x} />}
          {x.status === "failed" ? (
            <Button variant="subtle" size="compact-xs" loading={retry.busy} aria-label={t("Run {{name}} again", { name: x.title })} onClick={() => void retry.run({ input: { id: x.id } })}>{t("Run again")}</Button>
          ) : (
            <Button variant="subtle" size="compact-xs" aria-label={t("Cancel {{name}}", { name: x.title })} onClick={() => { cancel.clear(); setGoing(x); }}>{t("Cancel")}</Button>
          )}
        </div>
      ))}
      <Confirm opened={going !== null} title={t("Cancel {{name}}?", { name: going?.title ?? "" })} action={t("Cancel it")} busy={cancel.busy} failure={cancel.failure} onClose={() => setGoing(null)}
        onConfirm={async () => { if (going && (await cancel.run({ input: { id: going.id } }))) setGoing(null); }}>
        {t("It stops at its next step. A clone that is not complete goes away; other work stays as far as it came.")}
      </Confirm>
    </>
  );
}

const inBytes = new Set(["vfolder.clone", "vfolder.copy_files"]);

/** What is copied is counted in bytes, what is deleted in files. */
function Amounts({ task }: { task: Task }) {
  if (task.total === 0) return <span className="dim">{task.status === "waiting" ? t("waits") : t("goes on")}</span>;
  if (!inBytes.has(task.kind)) return <Progress done={task.done} total={task.total} label={task.title} />;
  return (
    <div className="row tight keep" style={{ minWidth: 160 }}>
      <div className="meter" style={{ flex: 1 }} role="progressbar" aria-label={t("Progress of {{name}}", { name: task.title })} aria-valuemin={0} aria-valuemax={task.total} aria-valuenow={task.done}>
        <i style={{ width: `${Math.min(100, (100 * task.done) / task.total)}%` }} />
      </div>
      <span className="dim nowrap">{bytes(task.done)} / {bytes(task.total)}</span>
    </div>
  );
}
