import { graphql, type ResultOf } from "../../api/graphql";

export const EndpointParts = graphql(`
  fragment EndpointParts on ChatEndpoint @_unmask {
    id name url models enabled hasKey createdAt domains { id name }
  }
`);
export const EndpointsQuery = graphql(
  `
  query ChatEndpoints($first: Int!, $after: Cursor) {
    chatEndpoints(first: $first, after: $after, orderBy: [{ field: NAME }]) {
      totalCount
      pageInfo { hasNextPage endCursor }
      edges { node { ...EndpointParts } }
    }
  }
`,
  [EndpointParts],
);
export const CreateEndpoint = graphql(
  `
  mutation CreateChatEndpoint($input: CreateChatEndpointInput!) {
    createChatEndpoint(input: $input) { endpoint { ...EndpointParts } }
  }
`,
  [EndpointParts],
);
export const UpdateEndpoint = graphql(
  `
  mutation UpdateChatEndpoint($input: UpdateChatEndpointInput!) {
    updateChatEndpoint(input: $input) { endpoint { ...EndpointParts } }
  }
`,
  [EndpointParts],
);
export const DeleteEndpoint = graphql(
  `mutation DeleteChatEndpoint($input: DeleteChatEndpointInput!) { deleteChatEndpoint(input: $input) { id } }`,
);
export const DomainsQuery = graphql(
  `query ChatDomains { domains(first: 100, orderBy: [{ field: NAME }]) { edges { node { id name } } } }`,
);

export type Endpoint = ResultOf<typeof EndpointParts>;

/** The texts of the form of an endpoint. */
export interface EndpointDraft {
  name: string;
  url: string;
  key: string;
  /** The stored key is removed. */
  noKey: boolean;
  /** One name on each line. */
  models: string;
  domains: string[];
}

export const endpointDraft = (e: Endpoint | null): EndpointDraft => ({
  name: e?.name ?? "",
  url: e?.url ?? "",
  key: "",
  noKey: false,
  models: e?.models.join("\n") ?? "",
  domains: e?.domains.map((d) => d.id) ?? [],
});

export const modelNames = (draft: EndpointDraft) => [
  ...new Set(
    draft.models
      .split(/[\n,]/)
      .map((name) => name.trim())
      .filter((name) => name !== ""),
  ),
];

const same = (a: readonly string[], b: readonly string[]) => a.length === b.length && a.every((x) => b.includes(x));

/** Returns what an update changes. A key that is left empty stays as it is. */
export function endpointChanges(e: Endpoint, draft: EndpointDraft) {
  const models = modelNames(draft);
  return {
    ...(draft.name === e.name ? {} : { name: draft.name }),
    ...(draft.url === e.url ? {} : { url: draft.url }),
    ...(draft.noKey ? { key: "" } : draft.key === "" ? {} : { key: draft.key }),
    ...(models.join("\n") === e.models.join("\n") ? {} : { models }),
    ...(same(
      draft.domains,
      e.domains.map((d) => d.id),
    )
      ? {}
      : { domains: draft.domains }),
  };
}
