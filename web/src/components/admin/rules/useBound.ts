import { useEffect, useState } from "react";
import { type Client, type TypedDocumentNode, useClient } from "urql";
import { type Failure, fromGraphQL } from "../../../api/errors";
import { graphql } from "../../../api/graphql";
import { type Connection, nodesOf } from "../usePages";
import { type Attachment, AttachmentFields } from "./attachment";

const DomainsQuery = graphql(`
  query BoundDomains($after: Cursor) { domains(first: 100, after: $after) { pageInfo { hasNextPage endCursor } edges { node { id policies { ...AttachmentFields } } } } }
`, [AttachmentFields]);
const ProjectsQuery = graphql(`
  query BoundProjects($after: Cursor) { projects(first: 100, after: $after) { pageInfo { hasNextPage endCursor } edges { node { id policies { ...AttachmentFields } } } } }
`, [AttachmentFields]);
const UsersQuery = graphql(`
  query BoundUsers($after: Cursor) { users(first: 100, after: $after) { pageInfo { hasNextPage endCursor } edges { node { id policies { ...AttachmentFields } } } } }
`, [AttachmentFields]);

interface Holding {
  id: string;
  policies: Attachment[];
}

/** Reads a list to its end, a page at a time. */
async function walk<Data>(client: Client, query: TypedDocumentNode<Data, { after?: string | null }>, pick: (data: Data) => Connection<Holding>, found: (page: Holding[]) => boolean) {
  for (let after: string | null = null; ; ) {
    const result = await client.query(query, { after }, { requestPolicy: "network-only" });
    if (result.error) throw result.error;
    const page = pick(result.data!);
    if (!found(nodesOf(page)) || !page.pageInfo.hasNextPage) return;
    after = page.pageInfo.endCursor;
  }
}

/** Everything that a policy binds; it grows while domains, projects and users are looked through. Keypairs are not listed by the server. */
export function useBound(policy: string): { list: Attachment[]; looked: number; done: boolean; failure: Failure | null; reload: () => void } {
  const client = useClient();
  const [stamp, setStamp] = useState(0);
  const [state, setState] = useState<{ list: Attachment[]; looked: number; done: boolean; failure: Failure | null }>({ list: [], looked: 0, done: false, failure: null });
  useEffect(() => {
    let wanted = true;
    let list: Attachment[] = [];
    let looked = 0;
    const found = (page: Holding[]) => {
      list = [...list, ...page.flatMap((h) => h.policies.filter((a) => a.policy.id === policy))];
      looked += page.length;
      if (wanted) setState((old) => ({ ...old, list, looked }));
      return wanted;
    };
    void (async () => {
      try {
        await walk(client, DomainsQuery, (d) => d.domains, found);
        await walk(client, ProjectsQuery, (d) => d.projects, found);
        await walk(client, UsersQuery, (d) => d.users, found);
        if (wanted) setState({ list, looked, done: true, failure: null });
      } catch (error) {
        if (wanted) setState({ list, looked, done: true, failure: fromGraphQL(error as never) });
      }
    })();
    return () => {
      wanted = false;
    };
  }, [client, policy, stamp]);
  return { ...state, reload: () => setStamp((n) => n + 1) };
}
