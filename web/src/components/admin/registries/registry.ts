import { graphql, type ResultOf } from "../../../api/graphql";

export const RegistryFields = graphql(
  `fragment RegistryFields on Registry {
    id name host plainHttp lastScannedAt proxy certificates repositories scanEvery tagPolicy
    projects { id name }
  }`,
);
export type Registry = ResultOf<typeof RegistryFields>;
