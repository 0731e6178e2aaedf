import { graphql, type ResultOf } from "../../../api/graphql";
import { AttachmentFields } from "../rules/attachment";

export const UserQuery = graphql(
  `
  query UserOne($id: ID!) {
    node(id: $id) {
      ... on User {
        id email username fullName role status createdAt lastLoginAt occupied permissions
        domain { id name }
        account {
          allowedAddresses containerUid containerGid containerGids passwordChangeRequired passwordChangedAt
          totpEnabledAt
        }
        policies { ...AttachmentFields }
        memberships { id admin project { id name permissions } }
      }
    }
  }
`,
  [AttachmentFields],
);

/** A user with the fields that their panel shows. */
export type OneUser = Extract<NonNullable<ResultOf<typeof UserQuery>["node"]>, { email: string }>;
