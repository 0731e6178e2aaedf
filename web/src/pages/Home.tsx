import { Button } from "@mantine/core";
import { useDebouncedCallback, useLocalStorage } from "@mantine/hooks";
import { Link } from "@tanstack/react-router";
import { graphql } from "../api/graphql";
import { duration, slotsLine } from "../components/format";
import { recentImages } from "../components/launch/recent";
import { Empty, FailureNote } from "../components/Note";
import { Status } from "../components/Status";
import { Usage } from "../components/Usage";
import { useLaunch } from "../hooks/useLaunch";
import { useLiveQuery } from "../hooks/useLiveQuery";
import { useNow } from "../hooks/useNow";
import { useSessionChanges } from "../hooks/useSessionChanges";
import { useViewer } from "../hooks/useViewer";
import { t } from "../i18n";
import { withSlotNames } from "../slots";

const HomeQuery = graphql(`
  query Home($me: ID!, $from: Time!) {
    open: sessions(first: 20, where: { ownerID: $me, statusNotIn: [TERMINATED, CANCELLED, ERROR] }, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
      totalCount
      edges {
        node { id version name type status slots createdAt startedAt pending { position summary } image { id name } }
      }
    }
    past: sessions(first: 5, where: { ownerID: $me, statusIn: [TERMINATED, CANCELLED, ERROR] }, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
      edges { node { id version name status result exitCode terminatedAt } }
    }
    usage(where: { user: $me, from: $from }) { slot slotSeconds }
    viewer { user { id occupied policies { id policy { id name totalSlots maxSessions } } } }
  }
`);

const month = () => {
  const now = new Date();
  return new Date(now.getFullYear(), now.getMonth(), 1).toISOString();
};

export function Home() {
  const viewer = useViewer();
  const launch = useLaunch();
  const [recent] = useLocalStorage(recentImages);
  const { data, failure, refetch } = useLiveQuery({
    query: HomeQuery,
    variables: { me: viewer.user.id, from: month() },
  });
  const again = useDebouncedCallback(refetch, { delay: 400, maxWait: 400 });
  useSessionChanges(again);
  const nodes = (data?.open.edges ?? []).flatMap((e) => (e?.node ? [e.node] : []));
  const past = (data?.past.edges ?? []).flatMap((e) => (e?.node ? [e.node] : []));
  const waiting = nodes.filter((n) => n.status === "PENDING");
  const running = nodes.filter((n) => n.status !== "PENDING");
  const now = useNow(running.length > 0);

  return (
    <>
      <div className="page-head">
        <h1>{t("Home")}</h1>
        <div className="push row">
          {recent.slice(0, 3).map((image) => (
            <Button key={image} variant="default" onClick={() => launch({ image })}>
              {t("Launch {{image}}", { image: image.split("/").at(-1)! })}
            </Button>
          ))}
        </div>
      </div>
      <FailureNote failure={failure} />
      <div className="columns">
        <div className="stack" style={{ gap: 16 }}>
          <section className="panel" aria-labelledby="running">
            <div className="panel-head">
              <h2 id="running">{t("Running")}</h2>
              <span className="dim">{running.length}</span>
            </div>
            {data && running.length === 0 ? (
              <Empty title={t("No running sessions")} cli="berth session create IMAGE">
                <span>
                  {t("Press")} <kbd className="key">L</kbd> {t("to launch a session, or type:")}
                </span>
              </Empty>
            ) : null}
            <ul className="rows">
              {running.map((s) => (
                <li key={s.id}>
                  <Link to="/sessions/$id" params={{ id: s.id }}>
                    <b>{s.name}</b>
                  </Link>
                  <Status status={s.status} />
                  <span className="dim clip">{s.image.name}</span>
                  <span className="push dim nowrap">{slotsLine(s.slots)}</span>
                  <span className="nowrap">{s.startedAt ? duration(now - Date.parse(s.startedAt)) : "–"}</span>
                </li>
              ))}
            </ul>
          </section>
          {waiting.length > 0 ? (
            <section className="panel" aria-labelledby="waiting">
              <div className="panel-head">
                <h2 id="waiting">{t("Pending")}</h2>
                <span className="dim">{waiting.length}</span>
              </div>
              <ul className="rows">
                {waiting.map((s) => (
                  <li key={s.id}>
                    <Link to="/sessions/$id" params={{ id: s.id }}>
                      <b>{s.name}</b>
                    </Link>
                    <Status status={s.status} />
                    <span className="dim">{withSlotNames(s.pending?.summary ?? "")}</span>
                    {s.pending ? (
                      <span className="push nowrap">{t("position {{n}}", { n: s.pending.position })}</span>
                    ) : null}
                  </li>
                ))}
              </ul>
            </section>
          ) : null}
          {past.length > 0 ? (
            <section className="panel" aria-labelledby="past">
              <div className="panel-head">
                <h2 id="past">{t("Recently ended")}</h2>
              </div>
              <ul className="rows">
                {past.map((s) => (
                  <li key={s.id}>
                    <Link to="/sessions/$id" params={{ id: s.id }}>
                      {s.name}
                    </Link>
                    <span className="push">
                      <Status status={s.status} result={s.result} exitCode={s.exitCode} />
                    </span>
                  </li>
                ))}
              </ul>
            </section>
          ) : null}
        </div>
        {data ? (
          <Usage
            occupied={data.viewer.user.occupied}
            policy={data.viewer.user.policies[0]?.policy ?? null}
            charged={data.usage}
            sessions={running.length}
          />
        ) : null}
      </div>
    </>
  );
}
