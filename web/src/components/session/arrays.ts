import { graphql, type ResultOf } from "../../api/graphql";
import { t } from "../../i18n";

export const ArraysQuery = graphql(`
  query SessionArrays($first: Int!, $where: SessionArrayWhereInput) {
    sessionArrays(first: $first, where: $where, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
      totalCount
      edges {
        node {
          id name indexes size maxRunning createdAt owner { id email }
          counts { pending starting running ending succeeded failed cancelled }
        }
      }
    }
  }
`);

export const CancelArray = graphql(`
  mutation CancelSessionArray($input: CancelSessionArrayInput!) {
    cancelSessionArray(input: $input) { array { id } sessions }
  }
`);

export const RetryArray = graphql(`
  mutation RetrySessionArray($input: RetrySessionArrayInput!) {
    retrySessionArray(input: $input) { array { id } sessions }
  }
`);

type Edge = NonNullable<NonNullable<ResultOf<typeof ArraysQuery>["sessionArrays"]["edges"]>[number]>;
export type ArrayRowData = NonNullable<Edge["node"]>;

/** Returns the number of members in each state, the most important states first. */
export function countsOf(a: ArrayRowData): { text: string; tone: string }[] {
  const c = a.counts;
  return [
    { n: c.running, text: t("{{n}} running", { n: c.running }), tone: "good" },
    { n: c.starting, text: t("{{n}} starting", { n: c.starting }), tone: "warn" },
    { n: c.pending, text: t("{{n}} pending", { n: c.pending }), tone: "warn" },
    { n: c.ending, text: t("{{n}} stopping", { n: c.ending }), tone: "warn" },
    { n: c.succeeded, text: t("{{n}} succeeded", { n: c.succeeded }), tone: "good" },
    { n: c.failed, text: t("{{n}} failed", { n: c.failed }), tone: "bad" },
    { n: c.cancelled, text: t("{{n}} cancelled", { n: c.cancelled }), tone: "dim" },
  ].filter((one) => one.n > 0);
}

/** Members that have not ended. */
export const liveOf = ({ counts: c }: ArrayRowData) => c.pending + c.starting + c.running + c.ending;
