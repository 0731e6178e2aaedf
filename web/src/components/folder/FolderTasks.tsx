import { useSubscription } from "urql";
import { graphql } from "../../api/graphql";
import { t } from "../../i18n";
import { taskWord } from "../../words";
import { FailedItems } from "../objectstorage/FailedItems";
import { Progress } from "../task/Progress";
import { TaskButtons } from "../task/TaskButtons";
import { isUnfinished, type Task, TaskFields } from "../task/task";

const TaskMoved = graphql(`subscription TaskMoved($subject: ID) { taskChanged(subject: $subject) { ...TaskFields } }`, [
  TaskFields,
]);

/** Keeps the tasks of one folder, or of all folders, up to date, and calls a function when one ends. */
export function useTaskChanges(subject: string | null, ended: () => void) {
  useSubscription({ query: TaskMoved, variables: { subject } }, (_, change) => {
    if (!isUnfinished(change.taskChanged)) ended();
    return change;
  });
}

/** Shows the progress of the tasks of a folder, with buttons to cancel and to retry. */
export function FolderTasks({ tasks, editable }: { tasks: Task[]; editable: boolean }) {
  const shown = tasks.filter((x) => isUnfinished(x) || x.status === "FAILED");
  return shown.map((x) => (
    <div key={x.id} className="row" style={{ flexWrap: "wrap" }}>
      <span>{x.title || taskWord(x.kind)}</span>
      {x.status === "FAILED" ? (
        <span className="bad">{x.message || t("failed")}</span>
      ) : x.total === 0 ? (
        <span className="dim">{x.status === "WAITING" ? t("pending") : t("running")}</span>
      ) : (
        <Progress task={x} />
      )}
      {x.status === "WAITING" && x.message ? <span className="tone-wait">{x.message}</span> : null}
      <FailedItems task={x} />
      {editable ? <TaskButtons task={x} /> : null}
    </div>
  ));
}
