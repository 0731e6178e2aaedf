import { useSubscription } from "urql";
import { graphql } from "../../api/graphql";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { t } from "../../i18n";
import { word } from "../../words";
import { nodesOf } from "../admin/usePages";
import { trim, when } from "../format";
import { Empty, FailureNote } from "../Note";

const EventsQuery = graphql(`
  query DeploymentEvents($id: ID!) {
    node(id: $id) {
      ... on Deployment {
        id
        events(first: 100, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
          totalCount
          edges { node { id createdAt kind revision replicasBefore replicasAfter metric value limit message } }
        }
      }
    }
  }
`);

const EventsChanged = graphql(`
  subscription DeploymentEventsChanged($id: ID!) { deploymentChanged(id: $id) { id events { totalCount } } }
`);

const number = (n: number) => trim(n.toFixed(n < 10 ? 2 : 0));
const bad = ["REFUSED", "ROLLED_BACK", "REPLICA_FAILED"];

/** The newest events of a deployment, with the numbers behind each decision. */
export function History({ id }: { id: string }) {
  const { data, failure, refetch } = useLiveQuery({ query: EventsQuery, variables: { id } });
  const events = data?.node && "events" in data.node ? data.node.events : null;
  useSubscription({ query: EventsChanged, variables: { id } }, (_, change) => {
    if (events && change.deploymentChanged.events.totalCount !== events.totalCount) refetch();
    return change;
  });
  const rows = nodesOf(events);
  return (
    <>
      <FailureNote failure={failure} what={t("The history could not be loaded")} />
      {events && rows.length === 0 ? <Empty title={t("No events yet")} /> : null}
      {rows.length > 0 ? (
        <div className="panel scroll-x">
          <table className="grid" aria-label={t("History")}>
            <thead>
              <tr>
                <th scope="col">{t("Time")}</th>
                <th scope="col">{t("Event")}</th>
                <th scope="col" className="num">
                  {t("Revision")}
                </th>
                <th scope="col">{t("Decision")}</th>
                <th scope="col">{t("Message")}</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((e) => (
                <tr key={e.id}>
                  <td className="nowrap dim">{when(e.createdAt)}</td>
                  <td className={bad.includes(e.kind) ? "nowrap tone-bad" : "nowrap"}>
                    {word("DeploymentEventKind", e.kind)}
                  </td>
                  <td className="num">{e.revision}</td>
                  <td className="nowrap">
                    {e.replicasBefore !== null && e.replicasAfter !== null ? (
                      <b>
                        {e.replicasBefore} → {e.replicasAfter}{" "}
                      </b>
                    ) : null}
                    {e.metric && e.value !== null ? (
                      <>
                        <code>{e.metric}</code> {number(e.value)}
                        {e.limit === null ? null : (
                          <span className="dim">
                            {" "}
                            ({t("limit {{limit}} for each replica", { limit: number(e.limit) })})
                          </span>
                        )}
                      </>
                    ) : null}
                  </td>
                  <td className="long">{e.message}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {events && events.totalCount > rows.length ? (
            <p className="panel-foot dim">
              {t("The newest {{shown}} of {{total}}.", { shown: rows.length, total: events.totalCount })}
            </p>
          ) : null}
        </div>
      ) : null}
    </>
  );
}
