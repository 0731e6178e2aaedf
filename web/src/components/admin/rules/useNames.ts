import { graphql } from "../../../api/graphql";
import { useLiveQuery } from "../../../hooks/useLiveQuery";

const NamesQuery = graphql(`
  query NamesOf($ids: [ID!]!) {
    nodes(ids: $ids) {
      id
      ... on User { email } ... on Domain { name } ... on Project { name } ... on Role { name } ... on ResourcePolicy { name }
      ... on ResourceGroup { name } ... on ResourcePreset { name } ... on Session { name } ... on Vfolder { name } ... on Agent { name }
      ... on Image { name } ... on Registry { name } ... on Volume { name } ... on Keypair { accessKey } ... on Task { title }
    }
  }
`);

/** Names of objects of any kind, as far as they are still there and in sight; at most 100. */
export function useNames(ids: (string | null | undefined)[]): Record<string, string> {
  const wanted = [...new Set(ids.filter((id): id is string => Boolean(id)))].slice(0, 100);
  const { data } = useLiveQuery({ query: NamesQuery, variables: { ids: wanted }, pause: wanted.length === 0 });
  return Object.fromEntries((data?.nodes ?? []).flatMap((n) => (n ? [[n.id, nameOf(n)]] : [])));
}

const nameOf = (n: object): string => {
  for (const key of ["email", "name", "accessKey", "title"]) if (key in n) return (n as Record<string, string>)[key]!;
  return "";
};
