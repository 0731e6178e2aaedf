import { Link } from "@tanstack/react-router";
import { graphql } from "../../api/graphql";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { t } from "../../i18n";
import { nodesOf } from "../admin/usePages";
import { when } from "../format";
import { FailureNote } from "../Note";
import { Status } from "../Status";

const MembersQuery = graphql(`
  query Members($where: SessionWhereInput) {
    sessions(first: 50, where: $where, orderBy: [{ field: CREATED_AT, direction: ASC }]) {
      totalCount
      edges { node { id version name status result exitCode arrayIndex statusMessage createdAt } }
    }
  }
`);

/** Shows the members of an array below its row: the latest session of each index. */
export function Members({ array, owners }: { array: string; owners: boolean }) {
  const { data, failure } = useLiveQuery({
    query: MembersQuery,
    variables: { where: { arrayID: array, replaced: false } },
  });
  const rows = nodesOf(data?.sessions).sort((a, b) => (a.arrayIndex ?? 0) - (b.arrayIndex ?? 0));
  const more = (data?.sessions.totalCount ?? 0) - rows.length;
  return (
    <>
      {failure ? (
        <tr>
          <td />
          <td colSpan={owners ? 8 : 7}>
            <FailureNote failure={failure} />
          </td>
        </tr>
      ) : null}
      {rows.map((r) => (
        <tr key={r.id}>
          <td className="pick dim">{r.arrayIndex}</td>
          <td className="clip">
            <Link to="/sessions/$id" params={{ id: r.id }}>
              {r.name}
            </Link>
          </td>
          <td>
            <Status status={r.status} exitCode={r.exitCode} result={r.result} />
          </td>
          <td colSpan={owners ? 5 : 4} className="clip dim">
            {r.statusMessage === `exit code ${r.exitCode}` ? null : r.statusMessage}
          </td>
          <td className="nowrap dim">{when(r.createdAt)}</td>
        </tr>
      ))}
      {more > 0 ? (
        <tr>
          <td />
          <td colSpan={owners ? 8 : 7}>
            <Link to="/sessions" search={{ array }}>
              {t("{{n}} more members", { n: more })}
            </Link>
          </td>
        </tr>
      ) : null}
    </>
  );
}
