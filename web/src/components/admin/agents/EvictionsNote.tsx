import { graphql } from "../../../api/graphql";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { t } from "../../../i18n";

const EvictionsQuery = graphql(
  `query EvictionsStopped { cluster { evictionsStopped { resourceGroup unreachable agents } } }`,
);

/** Names the resource groups in which evictions are suspended because too many agents are unreachable. */
export function EvictionsNote() {
  const { data } = useLiveQuery({ query: EvictionsQuery });
  return (data?.cluster.evictionsStopped ?? []).map((g) => (
    <div key={g.resourceGroup} className="failure" role="alert">
      <b>
        {t("{{lost}} of {{all}} agents in {{group}} are unreachable.", {
          lost: g.unreachable,
          all: g.agents,
          group: g.resourceGroup,
        })}
      </b>{" "}
      {t(
        "So many lost agents point to a network fault. No session of a lost agent is ended there until more agents reconnect.",
      )}
    </div>
  ));
}
