import { graphql, type ResultOf } from "../../../api/graphql";
import { AttachmentFields } from "../rules/attachment";
import type { Node } from "../usePages";

export const DomainQuery = graphql(
  `
  query DomainOne($id: ID!) {
    node(id: $id) {
      ... on Domain {
        id name description active createdAt occupied permissions
        registriesRestricted registries { id } totpRequired passwordMinLength passwordMaxAgeDays signUp
        policies { ...AttachmentFields }
        users(first: 1, where: { statusIn: [ACTIVE, INACTIVE, BEFORE_VERIFICATION] }) { totalCount }
        projects(first: 1) { totalCount }
      }
    }
    registries(first: 100, orderBy: [{ field: NAME }]) { edges { node { id name host } } }
  }
`,
  [AttachmentFields],
);
export const DeleteDomain = graphql(
  `mutation DeleteDomain($input: DeleteDomainInput!) { deleteDomain(input: $input) { id } }`,
);

type Data = ResultOf<typeof DomainQuery>;
/** A domain with the fields that its panel shows. */
export type OneDomain = Extract<NonNullable<Data["node"]>, { signUp: unknown }>;
/** The registries that a domain can allow. */
export type Registries = Node<Data["registries"]>[];
