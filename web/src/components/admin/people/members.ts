import { graphql } from "../../../api/graphql";

export const AddMembership = graphql(`
  mutation SetMember($input: AddMembershipInput!) {
    addMembership(input: $input) { project { id memberships { totalCount } } }
  }
`);
export const RemoveMembership = graphql(`
  mutation RemoveMember($input: RemoveMembershipInput!) {
    removeMembership(input: $input) { project { id memberships { totalCount } } }
  }
`);

/** Returns the condition for members whose e-mail address or name contains a text. */
export const membersWhere = (q: string) => (q.trim() ? { userContainsFold: q.trim() } : null);
