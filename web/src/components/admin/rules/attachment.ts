import { type ResultOf, graphql } from "../../../api/graphql";

export const AttachmentFields = graphql(`
  fragment AttachmentFields on PolicyAttachment {
    id policy { id name } domain { id name } project { id name } user { id email } keypairID resourceGroup { id name } withinProject { id name }
  }
`);
export type Attachment = ResultOf<typeof AttachmentFields>;

/** Whom an attachment binds, as one would say it. */
export const holderOf = (a: Attachment): { kind: string; name: string } =>
  a.domain ? { kind: "domain", name: a.domain.name }
    : a.project ? { kind: "project", name: a.project.name }
      : a.user ? { kind: "user", name: a.user.email }
        : { kind: "keypair", name: a.keypairID ?? "" };
