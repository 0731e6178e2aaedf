import { t } from "../../i18n";
import { amount, duration, slotName } from "../format";
import { type Dropped, checkWords, funnel } from "./funnel";

interface Report {
  position: number;
  decidedAt: string;
  summary: string;
  agents: number;
  dropped: Dropped[];
  limits: { scope: string; policy: string; what: string; used: string; requested: string; limit: string }[];
  nearest: { agent: string; slot: string; requested: string; free: string } | null;
}

/** Why a session waits: the sentence first, then the steps that led to it. */
export function Pending({ report, now }: { report: Report; now: number }) {
  const stages = funnel(report.agents, report.dropped);
  const { nearest } = report;
  return (
    <section className="panel" aria-labelledby="why">
      <div className="panel-head">
        <h2 id="why">{t("Why it waits")}</h2>
        <span className="push dim">
          {t("place {{n}} in the queue", { n: report.position })} · {t("looked {{ago}} ago", { ago: duration(now - Date.parse(report.decidedAt)) })}
        </span>
      </div>
      <div className="stack" style={{ padding: "12px 14px" }}>
        <p style={{ fontSize: 15 }}>{report.summary}</p>
        {stages.length > 0 ? (
          <ol className="funnel" aria-label={t("Agents left after each check")}>
            <li>
              <span>{t("Agents in the group")}</span>
              <span className="track" aria-hidden="true">
                <span className="left" style={{ width: "100%" }} />
              </span>
              <b>{report.agents}</b>
            </li>
            {stages.map((s) => (
              <li key={`${s.check} ${s.slot}`}>
                <span>
                  <b>−{s.count}</b> {t(checkWords(s.check, s.slot))}
                </span>
                <span className="track" aria-hidden="true">
                  <span className="left" style={{ width: `${(100 * s.left) / Math.max(1, report.agents)}%` }} />
                  <span className="gone" style={{ width: `${(100 * (s.before - s.left)) / Math.max(1, report.agents)}%` }} />
                </span>
                <b>{s.left}</b>
              </li>
            ))}
          </ol>
        ) : null}
        {report.limits.map((l) => (
          <p key={`${l.scope} ${l.what}`}>
            {t("Limit of the {{scope}} (policy {{policy}}): {{used}} of {{limit}} {{what}} used, {{requested}} more asked for.", {
              scope: l.scope,
              policy: l.policy,
              used: amount(l.what, l.used),
              limit: amount(l.what, l.limit),
              what: l.what === "sessions" ? t("sessions") : slotName(l.what),
              requested: amount(l.what, l.requested),
            })}
          </p>
        ))}
        {nearest ? (
          <p>
            {t("Nearest: {{agent}} has {{free}} {{slot}} free, {{requested}} asked for.", {
              agent: nearest.agent,
              free: amount(nearest.slot, nearest.free),
              slot: slotName(nearest.slot),
              requested: amount(nearest.slot, nearest.requested),
            })}
          </p>
        ) : null}
      </div>
    </section>
  );
}
