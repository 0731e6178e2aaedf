import { graphql, type ResultOf } from "../../../api/graphql";

export const AttachmentFields = graphql(`
  fragment AttachmentFields on PolicyAttachment {
    id policy { id name } domain { id name } project { id name } user { id email } keypairID keypair { id accessKey }
    resourceGroup { id name } withinProject { id name }
  }
`);
export type Attachment = ResultOf<typeof AttachmentFields>;
