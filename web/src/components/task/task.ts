import { useEffect } from "react";
import { graphql, type ResultOf } from "../../api/graphql";
import { useLiveQuery } from "../../hooks/useLiveQuery";

export const TaskFields = graphql(
  `fragment TaskFields on Task { id kind title status done total message attempt createdAt startedAt endedAt }`,
);
export type Task = ResultOf<typeof TaskFields>;

const GoingOnQuery = graphql(`query GoingOn($ids: [ID!]!) { nodes(ids: $ids) { id ... on Task { ...TaskFields } } }`, [
  TaskFields,
]);

const every = 2000;
/** As many nodes as the server gives at once. */
const most = 100;

export const goesOn = (task: Pick<Task, "status">) => task.status === "WAITING" || task.status === "RUNNING";

const ofBytes = new Set(["vfolder.clone", "vfolder.copy_files", "objectstorage.import", "objectstorage.export"]);
/** What is copied is counted in bytes; what is deleted, in files; all else in steps. */
export const countsBytes = (kind: string) => ofBytes.has(kind);

/** Kinds that are undone when they are cancelled, which one may do after they failed, too. */
const undone = new Set(["vfolder.clone", "vfolder.hand_over", "objectstorage.export"]);
/** A deletion is not taken back once it was asked for. */
const forEver = new Set(["vfolder.delete"]);

export const mayCancel = (task: Pick<Task, "kind" | "status">) =>
  !forEver.has(task.kind) && (goesOn(task) || (task.status === "FAILED" && undone.has(task.kind)));
/** A clone that was cancelled is not there any more to be gone on with. */
export const mayRetry = (task: Pick<Task, "kind" | "status">) =>
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
/** What becomes of a task that is cancelled, as a phrase to translate. */
export const cancelWord = (kind: string) =>
  cancelWords[kind] ??
  "The task stops after its current step. Completed work stays, and you can retry the task to continue.";

/** Reads tasks again and again while they go on; lists that show them follow. */
export function useFollowed(ids: string[]): Task[] {
  const { data, refetch } = useLiveQuery({
    query: GoingOnQuery,
    variables: { ids: ids.slice(0, most) },
    pause: ids.length === 0,
  });
  const key = ids.join();
  const tasks = (data?.nodes ?? []).flatMap((n) => (n && "attempt" in n ? [n] : []));
  const open = ids.length > 0 && (tasks.length === 0 || tasks.some(goesOn));
  useEffect(() => {
    if (!open) return;
    const timer = setInterval(refetch, every);
    return () => clearInterval(timer);
  }, [key, open]);
  return tasks;
}
