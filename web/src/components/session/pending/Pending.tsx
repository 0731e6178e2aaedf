import { t } from "../../../i18n";
import { duration, when } from "../../format";
import { Ahead } from "./Ahead";
import { Factors } from "./Factors";
import { Funnel } from "./Funnel";
import { Suggestions } from "./Suggestions";
import { type Report, stages, standing } from "./report";

interface Props {
  session: string;
  report: Report;
  /** Whether the viewer may change what it asks for. */
  may: boolean;
  now: number;
}

/** Why a session waits: the sentence first, then what would help, then the steps that led to it. */
export function Pending({ session, report, may, now }: Props) {
  return (
    <section className="panel" aria-labelledby="why">
      <div className="panel-head">
        <h2 id="why">{t("Why it waits")}</h2>
        <span className="push dim">
          {t("place {{n}} in the queue", { n: report.position })} · {t("looked {{ago}} ago", { ago: duration(now - Date.parse(report.decidedAt)) })}
        </span>
      </div>
      <div className="stack" style={{ padding: "12px 14px" }}>
        <p style={{ fontSize: 15 }} role="status">{report.summary}</p>
        <ol className="stages" aria-label={t("What it has to pass")}>
          {stages.map((s) => {
            const state = standing(s.key, report.stage);
            return (
              <li key={s.key} className={state} aria-current={state === "waits" ? "step" : undefined}>
                {t(s.label)} <span className="dim">{state === "passed" ? t("passed") : state === "waits" ? t("waits") : ""}</span>
              </li>
            );
          })}
        </ol>
        <Times report={report} now={now} />
        <Suggestions session={session} stamp={`${report.stage} ${report.summary}`} may={may} />
        <Funnel report={report} />
        <Ahead report={report} now={now} />
        {report.order ? <Factors order={report.order} /> : null}
      </div>
    </section>
  );
}

/** When it starts, where anybody knows. */
function Times({ report, now }: { report: Report; now: number }) {
  const at = (iso: string) => `${when(iso)} (${t("in {{time}}", { time: duration(Date.parse(iso) - now) })})`;
  if (!report.until && !report.estimatedStart && report.holds === 0) return null;
  return (
    <dl className="facts">
      {report.until ? <><dt>{t("Waits until")}</dt><dd>{at(report.until)}</dd></> : null}
      {report.estimatedStart ? <><dt>{t("Starts at the latest")}</dt><dd>{at(report.estimatedStart)} <span className="dim">{t("if nothing goes before it")}</span></dd></> : null}
      {report.holds > 0 ? <><dt>{t("Held for it")}</dt><dd>{t("{{count}} agents", { count: report.holds })}</dd></> : null}
    </dl>
  );
}
