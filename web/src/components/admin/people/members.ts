import { graphql } from "../../../api/graphql";

export const AddMembership = graphql(`
  mutation SetMember($input: AddMembershipInput!) {
    addMembership(input: $input) { project { id memberships { id admin user { id email fullName status } } } }
  }
`);
export const RemoveMembership = graphql(`
  mutation RemoveMember($input: RemoveMembershipInput!) {
    removeMembership(input: $input) { project { id memberships { id admin user { id email fullName status } } } }
  }
`);
