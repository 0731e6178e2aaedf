import { t } from "../../../i18n";
import { withSlotNames } from "../../../slots";
import { duration, when } from "../../format";
import { Ahead } from "./Ahead";
import { Factors } from "./Factors";
import { Funnel } from "./Funnel";
import { type Report, stageState, stages } from "./report";
import { Suggestions } from "./Suggestions";

interface Props {
  session: string;
  report: Report;
  /** Whether the viewer can change the request. */
  editable: boolean;
  now: number;
}

/** Explains why a session is pending: a summary, then suggestions, then the scheduler's checks. */
export function Pending({ session, report, editable, now }: Props) {
  return (
    <section className="panel" aria-labelledby="why">
      <div className="panel-head">
        <h2 id="why">{t("Why it is pending")}</h2>
        <span className="push dim">
          {t("position {{n}} in the queue", { n: report.position })} ·{" "}
          {t("checked {{ago}} ago", { ago: duration(now - Date.parse(report.decidedAt)) })}
        </span>
      </div>
      <div className="stack" style={{ padding: "12px 14px" }}>
        <p style={{ fontSize: 15 }} role="status">
          {withSlotNames(report.summary)}
        </p>
        <ol className="stages" aria-label={t("Scheduling steps")}>
          {stages.map((s) => {
            const state = stageState(s.key, report.stage);
            return (
              <li key={s.key} className={state} aria-current={state === "waits" ? "step" : undefined}>
                {t(s.label)}{" "}
                <span className="dim">{state === "passed" ? t("passed") : state === "waits" ? t("pending") : ""}</span>
              </li>
            );
          })}
        </ol>
        <Times report={report} now={now} />
        <Suggestions session={session} stamp={`${report.stage} ${report.summary}`} editable={editable} />
        <Funnel report={report} />
        <Ahead report={report} now={now} />
        {report.order ? <Factors order={report.order} /> : null}
      </div>
    </section>
  );
}

/** Shows when the session is expected to start, if that is known. */
function Times({ report, now }: { report: Report; now: number }) {
  const at = (iso: string) => `${when(iso)} (${t("in {{time}}", { time: duration(Date.parse(iso) - now) })})`;
  if (!report.until && !report.estimatedStart && report.holds === 0) return null;
  return (
    <dl className="facts">
      {report.until ? (
        <>
          <dt>{t("Pending until")}</dt>
          <dd>{at(report.until)}</dd>
        </>
      ) : null}
      {report.estimatedStart ? (
        <>
          <dt>{t("Latest start")}</dt>
          <dd>
            {at(report.estimatedStart)} <span className="dim">{t("unless another session goes first")}</span>
          </dd>
        </>
      ) : null}
      {report.holds > 0 ? (
        <>
          <dt>{t("Reserved for it")}</dt>
          <dd>{t("{{count}} machines", { count: report.holds })}</dd>
        </>
      ) : null}
    </dl>
  );
}
