import { useCallback, useEffect, useRef, useState } from "react";
import { type AnyVariables, createRequest, type TypedDocumentNode, useClient } from "urql";
import { pipe, subscribe } from "wonka";
import { type Failure, fromGraphQL } from "../../api/errors";
import { useGeneration } from "../../api/live";

/** The part of a Relay connection that a list needs. */
export interface Connection<Node> {
  totalCount?: number;
  pageInfo: { hasNextPage: boolean; endCursor: string | null };
  edges: ({ node: Node | null } | null)[] | null;
}

/** The node type of a connection. */
export type Node<C extends { edges: ({ node: unknown } | null)[] | null }> = NonNullable<
  NonNullable<NonNullable<C["edges"]>[number]>["node"]
>;

export interface Pages<Node> {
  rows: Node[];
  /** The number of rows of the whole list; null before it is known. */
  total: number | null;
  loading: boolean;
  failure: Failure | null;
  more: (() => void) | null;
  /** Reloads from the first page, after a row was added or removed. */
  reload: () => void;
}

export const nodesOf = <Node>(connection: Omit<Connection<Node>, "pageInfo"> | null | undefined): Node[] =>
  (connection?.edges ?? []).flatMap((e) => (e?.node ? [e.node] : []));

interface Args<Data, Variables, Node> {
  /** A query that takes $first and $after in addition to the given variables. */
  query: TypedDocumentNode<Data, Variables>;
  variables: Omit<Variables, "first" | "after">;
  pick: (data: Data) => Connection<Node> | null | undefined;
  size?: number;
}

/**
 * Loads a long list page by page. Cache updates show in all loaded pages. After a change of the filter, the old rows
 * stay until the new ones arrive.
 */
export function usePages<Data, Variables extends AnyVariables, Node>({
  query,
  variables,
  pick,
  size = 50,
}: Args<Data, Variables, Node>): Pages<Node> {
  const client = useClient();
  const generation = useGeneration();
  const key = JSON.stringify(variables);
  const [stamp, setStamp] = useState(0);
  const [pages, setPages] = useState<(Connection<Node> | null)[]>([]);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [loading, setLoading] = useState(true);
  const feeds = useRef<(() => void)[]>([]);
  const latest = useRef({ variables, pick });
  latest.current = { variables, pick };

  const read = useCallback(
    (n: number, after: string | null) => {
      setLoading(true);
      const request = createRequest(query, { ...latest.current.variables, first: size, after } as never);
      const { unsubscribe } = pipe(
        client.executeQuery<Data, Variables>(request, { requestPolicy: "cache-and-network" }),
        subscribe((result) => {
          if (result.data) {
            const page = latest.current.pick(result.data) ?? null;
            setPages((old) => [...old.slice(0, n), page, ...(n === 0 && !feeds.current[1] ? [] : old.slice(n + 1))]);
          }
          setFailure(result.error ? fromGraphQL(result.error) : null);
          if (!result.stale) setLoading(false);
        }),
      );
      feeds.current[n]?.();
      feeds.current[n] = unsubscribe;
    },
    [client, query, size],
  );
  useEffect(() => {
    read(0, null);
    return () => {
      for (const stop of feeds.current) stop();
      feeds.current = [];
    };
  }, [read, key, stamp, generation]);

  const reload = useCallback(() => setStamp((n) => n + 1), []);
  const last = pages[pages.length - 1];
  const next = last?.pageInfo.hasNextPage ? last.pageInfo.endCursor : null;
  return {
    rows: pages.flatMap((p) => nodesOf(p)),
    total: pages[0]?.totalCount ?? null,
    loading,
    failure,
    more: next === null ? null : () => read(pages.length, next),
    reload,
  };
}
