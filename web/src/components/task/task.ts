import { useEffect } from "react";
import { graphql, type ResultOf } from "../../api/graphql";
import { useLiveQuery } from "../../hooks/useLiveQuery";

export const TaskFields = graphql(
  `fragment TaskFields on Task { id kind title status done total message attempt retryAt createdAt startedAt endedAt }`,
);
export type Task = ResultOf<typeof TaskFields>;

const TasksByIdQuery = graphql(
  `query GoingOn($ids: [ID!]!) { nodes(ids: $ids) { id ... on Task { ...TaskFields } } }`,
  [TaskFields],
);

const pollInterval = 2000;
/** The most nodes that the server returns in one request. */
const maxNodes = 100;

export const isUnfinished = (task: Pick<Task, "status">) =>
  task.status === "WAITING" || task.status === "SCHEDULED" || task.status === "RUNNING";

const ofBytes = new Set(["vfolder.clone", "vfolder.copy_files", "objectstorage.import", "objectstorage.export"]);
/** Reports whether the progress is counted in bytes. Deletions count files, and all other tasks count steps. */
export const countsBytes = (kind: string) => ofBytes.has(kind);

/** Kinds whose effects are undone by a cancellation. They can also be cancelled after a failure. */
const undoneByCancel = new Set(["vfolder.clone", "vfolder.hand_over", "objectstorage.export"]);
/** Kinds that cannot be cancelled. */
const notCancellable = new Set(["vfolder.delete"]);

export const canCancel = (task: Pick<Task, "kind" | "status">) =>
  !notCancellable.has(task.kind) && (isUnfinished(task) || (task.status === "FAILED" && undoneByCancel.has(task.kind)));
/** Reports whether a task can be retried. A cancelled clone cannot, because its target folder is deleted. */
export const canRetry = (task: Pick<Task, "kind" | "status">) =>
  task.status === "FAILED" || (task.status === "CANCELLED" && task.kind !== "vfolder.clone");

const cancelWords: Record<string, string> = {
  "vfolder.clone": "The clone is deleted. The original folder is not affected.",
  "vfolder.copy_files": "The task stops after its current step. Copied files stay.",
  "objectstorage.import": "The task stops at once. Transferred files stay, and you can retry the task to continue.",
  "objectstorage.export":
    "The task stops at once. Transferred objects stay, and the parts of an incomplete object are removed.",
  "vfolder.hand_over":
    "The folder stays with its owner. The task cannot be cancelled after the transfer of the files has started.",
};
/** Returns what happens to a cancelled task, as a phrase to translate. */
export const cancelWord = (kind: string) =>
  cancelWords[kind] ??
  "The task stops after its current step. Completed work stays, and you can retry the task to continue.";

/** Polls tasks until they have ended. Lists with these tasks update through the cache. */
export function usePolledTasks(ids: string[]): Task[] {
  const { data, refetch } = useLiveQuery({
    query: TasksByIdQuery,
    variables: { ids: ids.slice(0, maxNodes) },
    pause: ids.length === 0,
  });
  const key = ids.join();
  const tasks = (data?.nodes ?? []).flatMap((n) => (n && "attempt" in n ? [n] : []));
  const open = ids.length > 0 && (tasks.length === 0 || tasks.some(isUnfinished));
  useEffect(() => {
    if (!open) return;
    const timer = setInterval(refetch, pollInterval);
    return () => clearInterval(timer);
  }, [key, open]);
  return tasks;
}
