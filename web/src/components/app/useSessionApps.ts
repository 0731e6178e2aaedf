import { useMemo } from "react";
import { graphql } from "../../api/graphql";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { type App, AppFields } from "./app";
import { useRefresh } from "./useRefresh";

const AppsOfSessions = graphql(
  `
  query AppsOfSessions($first: Int!, $ids: [ID!]) {
    sessions(first: $first, where: { idIn: $ids }) { edges { node { id apps { ...AppFields } } } }
  }
`,
  [AppFields],
);

/** The number of sessions, because the server asks a container for each. */
const maxSessions = 20;

/** Returns the apps of the first sessions of a list, by session. They are refreshed while an app starts. */
export function useSessionApps(ids: readonly string[]): ReadonlyMap<string, readonly App[]> {
  const key = ids.slice(0, maxSessions).join(" ");
  const requested = useMemo(() => (key ? key.split(" ") : []), [key]);
  const { data, refetch } = useLiveQuery({
    query: AppsOfSessions,
    variables: { first: maxSessions, ids: requested },
    pause: requested.length === 0,
  });
  const apps = useMemo(
    () => new Map((data?.sessions.edges ?? []).flatMap((e) => (e?.node ? [[e.node.id, e.node.apps] as const] : []))),
    [data],
  );
  useRefresh(
    refetch,
    [...apps.values()].some((list) => list.some((a) => a.status === "STARTING")),
  );
  return apps;
}
