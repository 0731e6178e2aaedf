import type { VariablesOf } from "gql.tada";
import { graphql } from "../../../api/graphql";

export const AuditQuery = graphql(`
  query AuditTrail($where: AuditEntryWhereInput, $first: Int, $after: Cursor) {
    auditEntries(first: $first, after: $after, where: $where, orderBy: [{ field: AT, direction: DESC }]) {
      totalCount
      pageInfo { hasNextPage endCursor }
      edges {
        node {
          id at actorId actorEmail actedAsId actedAs { id email } credentialId action entity entityId domainId projectId
          requestId clientAddress result message durationUs
        }
      }
    }
  }
`);
export type AuditWhere = NonNullable<VariablesOf<typeof AuditQuery>["where"]>;

/** The filter of the audit log, which is kept in the URL. */
export interface TrailFilter {
  from?: string;
  to?: string;
  actor?: string;
  as?: string;
  action?: string;
  entity?: string;
  result?: string;
  request?: string;
}

export const filterKeys = [
  "from",
  "to",
  "actor",
  "as",
  "action",
  "entity",
  "result",
  "request",
] as const satisfies readonly (keyof TrailFilter)[];

/** Reads the filter from a URL. Values that are not text are left out. */
export function filterOf(search: Record<string, unknown>): TrailFilter {
  const out: TrailFilter = {};
  for (const key of filterKeys) {
    const value = search[key];
    if (typeof value === "string" && value.trim()) out[key] = value.trim();
    else if (typeof value === "number") out[key] = String(value); // the router parses digits as a number
  }
  return out;
}

/** The filter value for every result except OK. */
export const anyFailure = "failed";

/** Converts a local time to the format of the server; null if it is not a time. */
export function toInstant(local: string): string | null {
  const at = new Date(local);
  return Number.isNaN(at.getTime()) ? null : at.toISOString();
}

const uuid = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i;

/** Returns the errors in a filter, by field. */
export function wrongIn(filter: TrailFilter): Partial<Record<keyof TrailFilter, string>> {
  const wrong: Partial<Record<keyof TrailFilter, string>> = {};
  for (const key of ["from", "to"] as const)
    if (filter[key] && !toInstant(filter[key])) wrong[key] = "Enter a date and a time.";
  for (const key of ["actor", "as"] as const)
    if (filter[key] && !uuid.test(filter[key])) wrong[key] = "Choose a user from the list.";
  if (!wrong.from && !wrong.to && filter.from && filter.to && toInstant(filter.from)! >= toInstant(filter.to)!)
    wrong.to = "Enter a time after the start.";
  return wrong;
}

export function whereOf(filter: TrailFilter): AuditWhere {
  const { from, to, actor, as, action, entity, result, request } = filter;
  return {
    ...(from ? { atGTE: toInstant(from) } : {}),
    ...(to ? { atLT: toInstant(to) } : {}),
    ...(actor ? { actorID: actor } : {}),
    ...(as ? { actedAsID: as } : {}),
    ...(action ? { action } : {}),
    ...(entity ? { entity } : {}),
    ...(result === anyFailure ? { resultNEQ: "OK" } : result ? { result } : {}),
    ...(request ? { requestID: request } : {}),
  };
}

/** The filters that the CSV export supports; the server rejects all others. */
const exported = ["from", "to", "actor", "entity", "result"] as const;

/** Returns the active filters that the CSV export does not support. */
export const notExported = (filter: TrailFilter) =>
  filterKeys.filter(
    (key) =>
      filter[key] &&
      (!(exported as readonly string[]).includes(key) || (key === "result" && filter.result === anyFailure)),
  );

/** Returns the URL of the CSV export with the same filter. */
export function exportUrl(filter: TrailFilter): string {
  const query = new URLSearchParams();
  for (const key of exported) {
    const value = filter[key];
    if (value) query.set(key, key === "from" || key === "to" ? toInstant(value)! : value);
  }
  const text = query.toString();
  return text ? `/export/audit.csv?${text}` : "/export/audit.csv";
}

export const results = [
  "OK",
  "PERMISSION_DENIED",
  "UNAUTHENTICATED",
  "NOT_FOUND",
  "INVALID_ARGUMENT",
  "ALREADY_EXISTS",
  "FAILED_PRECONDITION",
  "RESOURCE_EXHAUSTED",
  "ABORTED",
  "UNAVAILABLE",
  "DEADLINE_EXCEEDED",
  "INTERNAL",
  "STARTED",
] as const;

export const formatMicroseconds = (us: number) =>
  us < 1000
    ? `${us} µs`
    : us < 1_000_000
      ? `${(us / 1000).toFixed(us < 10_000 ? 1 : 0)} ms`
      : `${(us / 1_000_000).toFixed(2)} s`;
