import { graphql, type ResultOf } from "../../api/graphql";

export const ProfileQuery = graphql(`
  query Profile {
    viewer {
      user {
        id email username fullName role createdAt lastLoginAt
        domain { id name }
        account { allowedAddresses containerUid containerGid containerGids }
        memberships { id admin project { id name } }
        roleGrants { id scope scopeId role { id name description allows { entity operations } } }
      }
    }
  }
`);

export type Profile = ResultOf<typeof ProfileQuery>["viewer"]["user"];

/** Returns the networks that were typed, separated by commas or white space. */
export const networksOf = (text: string): string[] => text.split(/[\s,]+/).filter(Boolean);
