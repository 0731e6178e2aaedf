import { useEffect, useRef, useState } from "react";
import { createRequest, useClient } from "urql";
import { pipe, subscribe } from "wonka";
import { graphql } from "../api/graphql";

const NamesQuery = graphql(`
  query Names($ids: [ID!]!) {
    nodes(ids: $ids) {
      id
      ... on User { email } ... on Domain { name } ... on Project { name } ... on Role { name }
      ... on ResourcePolicy { name }
      ... on ResourceGroup { name } ... on ResourcePreset { name } ... on Session { name }
      ... on Vfolder { name } ... on Agent { name }
      ... on Image { name } ... on Registry { name } ... on Volume { name } ... on AccessToken { name }
      ... on Keypair { name } ... on SSHKey { name }
      ... on LoginSession { userAgent } ... on Task { title }
    }
  }
`);

/** The most IDs that the server accepts in one query. */
const maxIDs = 100;

/** Returns the names of objects of any kind, except those that are deleted or that the viewer cannot see. */
export function useNames(ids: readonly (string | null | undefined)[]): Record<string, string> {
  const client = useClient();
  const requested = useRef(new Set<string>());
  const feeds = useRef<(() => void)[]>([]);
  const [names, setNames] = useState<Record<string, string>>({});
  const wanted = [...new Set(ids.filter((id): id is string => Boolean(id)))];
  useEffect(() => {
    const fresh = wanted.filter((id) => !requested.current.has(id));
    for (const id of fresh) requested.current.add(id);
    for (let at = 0; at < fresh.length; at += maxIDs) {
      const { unsubscribe } = pipe(
        client.executeQuery(createRequest(NamesQuery, { ids: fresh.slice(at, at + maxIDs) })),
        subscribe(({ data }) => {
          const found = (data?.nodes ?? []).flatMap((n) => (n ? [[n.id, nameOf(n)]] : []));
          setNames((old) => ({ ...old, ...Object.fromEntries(found) }));
        }),
      );
      feeds.current.push(unsubscribe);
    }
  }, [client, wanted.join()]);
  useEffect(
    () => () => {
      for (const stop of feeds.current) stop();
      feeds.current = [];
      requested.current.clear();
    },
    [],
  );
  return names;
}

const nameOf = (n: object): string => {
  for (const key of ["email", "name", "title", "userAgent"]) if (key in n) return (n as Record<string, string>)[key]!;
  return "";
};
