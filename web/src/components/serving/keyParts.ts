import { graphql, type ResultOf } from "../../api/graphql";

export const KeyParts = graphql(`
  fragment KeyParts on DeploymentKey @_unmask {
    id name prefix apis requestsPerMinute tokensPerMinute tokenBudget usedRequests usedTokens
    createdAt expiresAt lastUsedAt user { id email } deployment { id name }
  }
`);
export type Key = ResultOf<typeof KeyParts>;
