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

/** The form state of an object storage. */
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
  /** Whether all users of the domain can use it. */
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

const comparedFields = [
  "name",
  "endpoint",
  "region",
  "bucket",
  "prefix",
  "addressing",
  "accessKeyID",
  "readOnly",
] as const;

/** Returns the changed fields of a form; the secret only if the user typed one. */
export function changes(s: Storage, d: Draft): Partial<Draft> {
  const was = draftOf(s);
  const list: Partial<Draft> = Object.fromEntries(comparedFields.filter((k) => d[k] !== was[k]).map((k) => [k, d[k]]));
  return d.secret === "" ? list : { ...list, secret: d.secret };
}

/**
 * Reports whether the secret must be typed again. The server uses a stored secret only with the endpoint and access
 * key that it was saved for.
 */
export const needsSecret = (s: Storage, d: Draft) =>
  d.accessKeyID !== "" && (s.accessKeyID !== d.accessKeyID || s.endpoint !== d.endpoint.trim().replace(/\/$/, ""));

/** Returns a path in a bucket as an s3:// URL. */
export const s3URL = (s: Pick<Storage, "bucket" | "prefix">, path = "") => `s3://${s.bucket}/${s.prefix}${path}`;
