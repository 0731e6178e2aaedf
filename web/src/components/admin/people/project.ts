import { graphql, type ResultOf } from "../../../api/graphql";
import { AttachmentFields } from "../rules/attachment";

export const ProjectQuery = graphql(
  `
  query ProjectOne($id: ID!) {
    node(id: $id) {
      ... on Project {
        id name description active type createdAt occupied permissions
        domain { id name }
        policies { ...AttachmentFields }
        memberships { totalCount }
      }
    }
  }
`,
  [AttachmentFields],
);
export const UpdateProject = graphql(
  `
  mutation ChangeProject($input: UpdateProjectInput!) {
    updateProject(input: $input) { project { id name description active } }
  }
`,
);
export const DeleteProject = graphql(
  `mutation DeleteProject($input: DeleteProjectInput!) { deleteProject(input: $input) { id } }`,
);

/** The members of a project, in the order in which they joined. */
export const MembersQuery = graphql(`
  query Members($id: ID!, $where: MembershipWhereInput, $first: Int, $after: Cursor) {
    node(id: $id) {
      id
      ... on Project {
        memberships(first: $first, after: $after, where: $where, orderBy: [{ field: CREATED_AT }]) {
          totalCount pageInfo { hasNextPage endCursor }
          edges { node { id admin user { id email fullName status } } }
        }
      }
    }
  }
`);

/** A project with the fields that its panel shows. */
export type OneProject = Extract<NonNullable<ResultOf<typeof ProjectQuery>["node"]>, { memberships: unknown }>;
