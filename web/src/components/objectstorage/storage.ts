import { graphql, type ResultOf } from "../../api/graphql";

export const StorageFields = graphql(`
  fragment StorageFields on ObjectStorage {
    id name endpoint region bucket prefix addressing accessKeyID readOnly permissions domain { id name }
    owner { id email }
  }
`);
export type Storage = ResultOf<typeof StorageFields>;

export const StoragesQuery = graphql(
  `
  query ObjectStorages($first: Int, $after: Cursor) {
    objectStorages(first: $first, after: $after, orderBy: [{ field: NAME, direction: ASC }]) {
      totalCount pageInfo { hasNextPage endCursor } edges { node { ...StorageFields } }
    }
  }
`,
  [StorageFields],
);

/** What is written in the form of a storage. */
export interface Draft {
  name: string;
  endpoint: string;
  region: string;
  bucket: string;
  prefix: string;
  addressing: Storage["addressing"];
  accessKeyID: string;
  secret: string;
  readOnly: boolean;
  /** For everybody in the domain. */
  shared: boolean;
}

export const draftOf = (s: Storage | null): Draft => ({
  name: s?.name ?? "",
  endpoint: s?.endpoint ?? "https://",
  region: s?.region ?? "",
  bucket: s?.bucket ?? "",
  prefix: s?.prefix ?? "",
  addressing: s?.addressing ?? "PATH",
  accessKeyID: s?.accessKeyID ?? "",
  secret: "",
  readOnly: s?.readOnly ?? false,
  shared: s?.domain != null,
});

const said = ["name", "endpoint", "region", "bucket", "prefix", "addressing", "accessKeyID", "readOnly"] as const;

/** What of a draft is another than what is stored; the secret only when it was written. */
export function changes(s: Storage, d: Draft): Partial<Draft> {
  const was = draftOf(s);
  const list: Partial<Draft> = Object.fromEntries(said.filter((k) => d[k] !== was[k]).map((k) => [k, d[k]]));
  return d.secret === "" ? list : { ...list, secret: d.secret };
}

/** The server takes a secret to no other endpoint, and as no other key, than it was given for. */
export const needsSecret = (s: Storage, d: Draft) =>
  d.accessKeyID !== "" && (s.accessKeyID !== d.accessKeyID || s.endpoint !== d.endpoint.trim().replace(/\/$/, ""));

/** Where in a bucket a path leads, as people read it. */
export const placeIn = (s: Pick<Storage, "bucket" | "prefix">, path = "") => `s3://${s.bucket}/${s.prefix}${path}`;
