import { useEffect } from "react";
import { type ResultOf, graphql } from "../../../api/graphql";
import { useLiveQuery } from "../../../hooks/useLiveQuery";

export const TaskFields = graphql(`fragment TaskFields on Task { id kind title status done total message attempt createdAt startedAt endedAt }`);
export type Task = ResultOf<typeof TaskFields>;

const GoingOnQuery = graphql(`query GoingOn($ids: [ID!]!) { nodes(ids: $ids) { id ... on Task { ...TaskFields } } }`, [TaskFields]);

const every = 2000;
/** As many nodes as the server gives at once. */
const most = 100;

export const goesOn = (task: Pick<Task, "status">) => task.status === "waiting" || task.status === "running";

/** Reads tasks again and again while they go on; lists that show them follow. */
export function useFollowed(ids: string[]): Task[] {
  const { data, refetch } = useLiveQuery({ query: GoingOnQuery, variables: { ids: ids.slice(0, most) }, pause: ids.length === 0 });
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
