import { graphql, type ResultOf } from "../../api/graphql";

/** A user has at most twenty keypairs, so one page is enough. */
export const KeypairsQuery = graphql(`
  query Keypairs {
    keypairs(first: 100, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
      edges {
        node { id accessKey name active isDefault rateLimit createdAt lastUsedAt rotatedAt expiresAt makerID status }
      }
    }
  }
`);

export const UpdateKeypair = graphql(`
  mutation UpdateKeypair($input: UpdateKeypairInput!) {
    updateKeypair(input: $input) { keypair { id name active isDefault rateLimit } }
  }
`);

export type Keypair = NonNullable<
  NonNullable<NonNullable<ResultOf<typeof KeypairsQuery>["keypairs"]["edges"]>[number]>["node"]
>;

/** A new keypair with its secret, which the server returns only once. */
export interface Made {
  id: string;
  name: string;
  accessKey: string;
  secret: string;
}

/** The default rate limit of a keypair, in requests per 15 minutes. */
export const defaultRateLimit = 10_000;
