import { graphql } from "../../api/graphql";
import { RequestParts } from "../launch/saved";

export const RequestOfSession = graphql(
  `query RequestOfSession($id: ID!) { node(id: $id) { ... on Session { id name request { ...RequestParts } } } }`,
  [RequestParts],
);

export const RestartSession = graphql(`
  mutation RestartSession($input: RestartSessionInput!) {
    restartSession(input: $input) { session { id version name status } }
  }
`);

export const SetSessionTags = graphql(`
  mutation SetSessionTags($input: SetSessionTagsInput!) {
    setSessionTags(input: $input) { session { id version tags } }
  }
`);
