import { graphql, type ResultOf, type VariablesOf } from "../../../api/graphql";

const UserRow = graphql(`
  fragment UserRow on User {
    id email username fullName role status lastLoginAt domain { id name } policies { id policy { id name } }
  }
`);
export type UserRow = ResultOf<typeof UserRow>;

/** The users of all domains, or of one domain. */
export const UsersQuery = graphql(
  `
  query Users($where: UserWhereInput, $domain: ID!, $inDomain: Boolean!, $first: Int, $after: Cursor) {
    users(first: $first, after: $after, where: $where, orderBy: [{ field: EMAIL, direction: ASC }]) @skip(if: $inDomain) {
      totalCount pageInfo { hasNextPage endCursor } edges { node { ...UserRow } }
    }
    node(id: $domain) @include(if: $inDomain) {
      id
      ... on Domain {
        users(first: $first, after: $after, where: $where, orderBy: [{ field: EMAIL, direction: ASC }]) {
          totalCount pageInfo { hasNextPage endCursor } edges { node { ...UserRow } }
        }
      }
    }
  }
`,
  [UserRow],
);

export type Where = NonNullable<VariablesOf<typeof UsersQuery>["where"]>;

const roles = ["USER", "ADMIN", "SUPERADMIN", "MONITOR"] as const;
const statuses = ["ACTIVE", "INACTIVE", "BEFORE_VERIFICATION", "DELETED"] as const;

/** The filter of the list of users, which is kept in the URL. */
export interface People {
  q?: string;
  domain?: string;
  project?: string;
  role?: (typeof roles)[number];
  status?: (typeof statuses)[number];
  /** The user whose panel is open beside the list. */
  open?: string;
  view?: "import";
}

const text = (value: unknown) => (typeof value === "string" && value !== "" ? value : undefined);
const one = <T extends string>(list: readonly T[], value: unknown) => list.find((x) => x === value);

export const peopleOf = (search: Record<string, unknown>): People => ({
  q: text(search.q),
  domain: text(search.domain),
  project: text(search.project),
  role: one(roles, search.role),
  status: one(statuses, search.status),
  open: text(search.open),
  view: search.view === "import" ? "import" : undefined,
});

/** The condition of a list. Deleted users are included only on request. */
export function whereOf(f: People): Where {
  return {
    ...(f.q ? { or: [{ emailContainsFold: f.q }, { fullNameContainsFold: f.q }] } : {}),
    ...(f.role ? { role: f.role } : {}),
    ...(f.status ? { status: f.status } : { statusIn: ["ACTIVE", "INACTIVE", "BEFORE_VERIFICATION"] }),
    ...(f.project ? { memberOf: f.project } : {}),
  };
}
