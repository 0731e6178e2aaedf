import { graphql, type ResultOf } from "../../api/graphql";

/** Nobody has more than twenty. */
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

/** A keypair whose secret is known, this once. */
export interface Made {
  id: string;
  name: string;
  accessKey: string;
  secret: string;
}

/** Requests in 15 minutes, of a keypair that has no limit of its own. */
export const usualRate = 10_000;
