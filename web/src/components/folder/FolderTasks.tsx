import { useSubscription } from "urql";
import { graphql } from "../../api/graphql";
import { t } from "../../i18n";
import { taskWord } from "../../words";
import { WhatFailed } from "../objectstorage/WhatFailed";
import { Progress } from "../task/Progress";
import { TaskButtons } from "../task/TaskButtons";
import { goesOn, type Task, TaskFields } from "../task/task";

const TaskMoved = graphql(`subscription TaskMoved($subject: ID) { taskChanged(subject: $subject) { ...TaskFields } }`, [
  TaskFields,
]);

/** Keeps the tasks of one folder, or of all folders, up to date, and calls a function when one ends. */
export function useTasksMove(subject: string | null, ended: () => void) {
  useSubscription({ query: TaskMoved, variables: { subject } }, (_, change) => {
    if (!goesOn(change.taskChanged)) ended();
    return change;
  });
}

/** Shows the progress of the tasks of a folder, with buttons to cancel and to retry. */
export function FolderTasks({ tasks, may }: { tasks: Task[]; may: boolean }) {
  const shown = tasks.filter((x) => goesOn(x) || x.status === "FAILED");
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
      <WhatFailed task={x} />
      {may ? <TaskButtons task={x} /> : null}
    </div>
  ));
}
