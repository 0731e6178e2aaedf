import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useNow } from "../../hooks/useNow";
import { t } from "../../i18n";
import { nodesOf } from "../admin/usePages";
import { duration } from "../format";
import { Empty } from "../Note";
import { Status, Toned } from "../Status";
import { type DeploymentDetail, rate } from "./serving";

/** The replicas of a deployment, with the reason why each waits or has failed. */
export function Replicas({ deployment: d }: { deployment: DeploymentDetail }) {
  const [ended, setEnded] = useState(false);
  const now = useNow(true);
  const all = nodesOf(d.replicas);
  const past = all.filter((r) => r.endedAt);
  // The newest failure says why a replica is missing, so it is always shown.
  const shown = ended ? all : all.filter((r) => !r.endedAt || (r.failed && r === past[0]));
  const load = new Map(d.load?.replicas.map((l) => [l.replica, l]));
  return (
    <section className="panel scroll-x" aria-label={t("Replicas")}>
      <div className="panel-head">
        <h2>{t("Replicas")}</h2>
        {past.length > 0 ? (
          <button type="button" className="chip push" aria-pressed={ended} onClick={() => setEnded(!ended)}>
            {t("Ended ({{count}})", { count: past.length })}
          </button>
        ) : null}
      </div>
      {shown.length === 0 ? (
        <Empty title={t("No replicas")}>
          {d.status === "ASLEEP"
            ? t("The next request starts one.")
            : d.wanted > 0
              ? t("None has been created yet.")
              : t("None is wanted.")}
        </Empty>
      ) : (
        <table className="grid">
          <thead>
            <tr>
              <th scope="col">{t("Session")}</th>
              <th scope="col">{t("Phase")}</th>
              <th scope="col" className="num">
                {t("Since")}
              </th>
              <th scope="col" className="num">
                {t("Revision")}
              </th>
              <th scope="col" className="num roomy">
                {t("In flight")}
              </th>
              <th scope="col" className="num roomy">
                {t("Requests/s")}
              </th>
              <th scope="col">{t("Message")}</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((r) => {
              const l = load.get(r.id);
              return (
                <tr key={r.id}>
                  <td className="clip">
                    {r.session ? (
                      <Link to="/sessions/$id" params={{ id: r.session.id }} className="row-name">
                        {r.session.name}
                      </Link>
                    ) : (
                      <span className="dim">{r.endedAt ? t("deleted") : t("not created yet")}</span>
                    )}
                  </td>
                  <td>
                    {r.failed ? (
                      <Toned tone="bad" status="failed">
                        {t("Failed")}
                      </Toned>
                    ) : (
                      <Status status={r.phase} />
                    )}
                  </td>
                  <td className="num nowrap dim">{duration(now - Date.parse(r.phaseSince))}</td>
                  <td className="num">{r.revision}</td>
                  <td className="num roomy">{l ? l.inFlight : "–"}</td>
                  <td className="num roomy">{l ? rate(l.requestsPerSecond) : "–"}</td>
                  <td className="long sentence">
                    {r.message}
                    {l?.ejected ? (
                      <span className="tone-bad"> {t("It gets no requests, because several failed in a row.")}</span>
                    ) : null}
                  </td>
                </tr>
              );
            })}
          </tbody>
        </table>
      )}
    </section>
  );
}
