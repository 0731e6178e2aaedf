import { useCallback, useEffect, useRef, useState } from "react";
import { type AnyVariables, createRequest, type TypedDocumentNode, useClient } from "urql";
import { pipe, subscribe } from "wonka";
import { type Failure, fromGraphQL } from "../../api/errors";
import { useGeneration } from "../../api/live";

/** A Relay connection, as far as a list reads it. */
export interface Connection<Node> {
  totalCount?: number;
  pageInfo: { hasNextPage: boolean; endCursor: string | null };
  edges: ({ node: Node | null } | null)[] | null;
}

/** An object of a connection. */
export type Node<C extends { edges: ({ node: unknown } | null)[] | null }> = NonNullable<
  NonNullable<NonNullable<C["edges"]>[number]>["node"]
>;

export interface Pages<Node> {
  rows: Node[];
  /** Of the whole list; null before it is known. */
  total: number | null;
  loading: boolean;
  failure: Failure | null;
  more: (() => void) | null;
  /** Begins again at the first page: something came or went. */
  reload: () => void;
}

export const nodesOf = <Node>(connection: Omit<Connection<Node>, "pageInfo"> | null | undefined): Node[] =>
  (connection?.edges ?? []).flatMap((e) => (e?.node ? [e.node] : []));

interface Args<Data, Variables, Node> {
  /** Takes $first and $after besides the variables given. */
  query: TypedDocumentNode<Data, Variables>;
  variables: Omit<Variables, "first" | "after">;
  pick: (data: Data) => Connection<Node> | null | undefined;
  size?: number;
}

/**
 * A long list, page by page. What mutations change in the cache shows in
 * every page; the rows of before stay until those of another filter arrive.
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

  const last = pages[pages.length - 1];
  const next = last?.pageInfo.hasNextPage ? last.pageInfo.endCursor : null;
  return {
    rows: pages.flatMap((p) => nodesOf(p)),
    total: pages[0]?.totalCount ?? null,
    loading,
    failure,
    more: next === null ? null : () => read(pages.length, next),
    reload: () => setStamp((n) => n + 1),
  };
}
