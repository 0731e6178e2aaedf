import { useEffect, useRef, useState } from "react";
import { useClient } from "urql";
import { graphql } from "../api/graphql";

const NamesQuery = graphql(`
  query Names($ids: [ID!]!) {
    nodes(ids: $ids) {
      id
      ... on User { email } ... on Domain { name } ... on Project { name } ... on Role { name } ... on ResourcePolicy { name }
      ... on ResourceGroup { name } ... on ResourcePreset { name } ... on Session { name } ... on Vfolder { name } ... on Agent { name }
      ... on Image { name } ... on Registry { name } ... on Volume { name } ... on AccessToken { name } ... on Keypair { name } ... on SSHKey { name }
      ... on LoginSession { userAgent }
    }
  }
`);

/** Most ids of one question, as the server has it. */
const most = 100;

/** Names of objects by their ids, as far as they are still there and in sight. */
export function useNames(ids: readonly (string | null | undefined)[]): Record<string, string> {
  const client = useClient();
  const asked = useRef(new Set<string>());
  const [names, setNames] = useState<Record<string, string>>({});
  const wanted = [...new Set(ids.filter((id): id is string => Boolean(id)))];
  useEffect(() => {
    const fresh = wanted.filter((id) => !asked.current.has(id));
    for (const id of fresh) asked.current.add(id);
    for (let at = 0; at < fresh.length; at += most) {
      void client.query(NamesQuery, { ids: fresh.slice(at, at + most) }, { requestPolicy: "cache-first" }).then(({ data }) => {
        const found = (data?.nodes ?? []).flatMap((n) => (n ? [[n.id, "email" in n ? n.email : "name" in n ? n.name : "userAgent" in n ? n.userAgent : ""]] : []));
        setNames((old) => ({ ...old, ...Object.fromEntries(found) }));
      });
    }
  }, [client, wanted.join()]);
  return names;
}
