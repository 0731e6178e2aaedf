import { Select } from "@mantine/core";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { useSubscription } from "urql";
import { fromGraphQL } from "../api/errors";
import { graphql, type ResultOf } from "../api/graphql";
import { duration, slotsLine, when } from "../components/format";
import { Empty, FailureNote } from "../components/Note";
import { stageWord } from "../components/session/pending/report";
import { useNow } from "../hooks/useNow";
import { useViewer } from "../hooks/useViewer";
import { t } from "../i18n";

const QueueChanged = graphql(`
  subscription QueueChanged($resourceGroup: ID!, $first: Int!) {
    queueChanged(resourceGroup: $resourceGroup, first: $first) {
      totalCount
      entries {
        position mine priority waitingSince stage why holds estimatedStart session { id name slots owner { id email } }
      }
    }
  }
`);
type Queued = ResultOf<typeof QueueChanged>["queueChanged"]["entries"][number];

/** The page size of the queue. */
const pageSize = 100;

/** Lists the pending sessions of a resource group, in the order in which the scheduler considers them. */
export function Queue() {
  const { group: asked } = useSearch({ from: "/frame/queue" });
  const navigate = useNavigate({ from: "/queue" });
  const groups = useViewer().resourceGroups;
  const group = groups.find((g) => g.id === asked) ?? groups[0];
  const [onlyMine, setOnlyMine] = useState(false);
  const [{ data, error, fetching }] = useSubscription({
    query: QueueChanged,
    variables: { resourceGroup: group?.id ?? "", first: pageSize },
    pause: !group,
  });
  const queue = group ? data?.queueChanged : null;
  const entries = (queue?.entries ?? []).filter((e) => e.mine || !onlyMine);
  const now = useNow(entries.length > 0);
  return (
    <>
      <div className="page-head">
        <h1>{t("Queue")}</h1>
        <span className="dim">{queue ? t("{{count}} pending sessions", { count: queue.totalCount }) : null}</span>
        <div className="push row">
          <button type="button" className="chip" aria-pressed={onlyMine} onClick={() => setOnlyMine(!onlyMine)}>
            {t("Only mine")}
          </button>
          <Select
            aria-label={t("Resource group")}
            w={200}
            allowDeselect={false}
            data={groups.map((g) => ({ value: g.id, label: g.name }))}
            value={group?.id ?? null}
            onChange={(id) => void navigate({ search: { group: id ?? undefined }, replace: true })}
          />
        </div>
      </div>
      <FailureNote failure={error ? fromGraphQL(error) : null} what={t("The queue could not be loaded")} />
      {entries.length > 0 ? <Entries entries={entries} now={now} /> : null}
      {entries.length === 0 && !error ? (
        <div className="panel">
          {!group ? (
            <Empty title={t("No resource group is open to you")} />
          ) : fetching && !queue ? (
            <p className="empty dim">{t("Loading…")}</p>
          ) : (
            <Empty
              title={
                onlyMine
                  ? t("None of your sessions is pending in {{group}}", { group: group.name })
                  : t("No pending sessions in {{group}}", { group: group.name })
              }
            >
              <span>{t("A new session is scheduled next.")}</span>
            </Empty>
          )}
        </div>
      ) : null}
      {queue && queue.totalCount > queue.entries.length ? (
        <p className="dim">{t("and {{count}} more", { count: queue.totalCount - queue.entries.length })}</p>
      ) : null}
    </>
  );
}

function Entries({ entries, now }: { entries: readonly Queued[]; now: number }) {
  const known = entries.some((e) => e.estimatedStart);
  return (
    <div className="panel scroll-x" role="region" aria-label={t("Queue")} tabIndex={0}>
      <table className="grid" aria-label={t("Queue")}>
        <thead>
          <tr>
            <th scope="col" className="num">
              {t("Position")}
            </th>
            <th scope="col">{t("Session")}</th>
            <th scope="col">{t("Owner")}</th>
            <th scope="col" className="num">
              {t("Priority")}
            </th>
            <th scope="col" className="num">
              {t("Pending for")}
            </th>
            <th scope="col">{t("Reason")}</th>
            {known ? <th scope="col">{t("Latest start")}</th> : null}
          </tr>
        </thead>
        <tbody>
          {entries.map((e) => (
            <tr key={e.position} aria-selected={e.mine || undefined}>
              <td className="num">{e.position}</td>
              <td>
                {e.session ? (
                  <>
                    <Link to="/sessions/$id" params={{ id: e.session.id }}>
                      <b>{e.session.name}</b>
                    </Link>
                    <div className="dim nowrap">{slotsLine(e.session.slots)}</div>
                  </>
                ) : (
                  <span className="dim">{t("session of another user")}</span>
                )}
              </td>
              <td className="clip">
                {e.mine ? t("you") : (e.session?.owner?.email ?? <span className="dim">–</span>)}
              </td>
              <td className="num">{e.priority}</td>
              <td className="num nowrap" title={when(e.waitingSince)}>
                {duration(now - Date.parse(e.waitingSince))}
              </td>
              <td className="prosy">
                {e.why || t(stageWord(e.stage))}
                {e.holds > 0 ? (
                  <span className="tone-wait">
                    {" "}
                    · {t("{{count}} machines are reserved for it", { count: e.holds })}
                  </span>
                ) : null}
              </td>
              {known ? (
                <td className="nowrap">
                  {e.estimatedStart ? (
                    <span title={when(e.estimatedStart)}>
                      {t("in {{time}}", { time: duration(Date.parse(e.estimatedStart) - now) })}
                    </span>
                  ) : (
                    <span className="dim">–</span>
                  )}
                </td>
              ) : null}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
