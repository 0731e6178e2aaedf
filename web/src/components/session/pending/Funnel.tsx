import { t } from "../../../i18n";
import { slotName } from "../../../slots";
import { word } from "../../../words";
import { amount } from "../../format";
import { checkPhrase, funnel } from "./funnel";
import type { Report } from "./report";

/** Shows which agents each check ruled out, what the best of them lacks, and which limits are reached. */
export function Funnel({ report }: { report: Pick<Report, "agents" | "dropped" | "nearest" | "limits"> }) {
  const { nearest } = report;
  const steps = funnel(report.agents, report.dropped);
  const part = (n: number) => `${(100 * n) / Math.max(1, report.agents)}%`;
  return (
    <>
      {steps.length > 0 ? (
        <ol className="funnel" aria-label={t("Machines left after each check")}>
          <li>
            <span>{t("Machines in the group")}</span>
            <span className="track" aria-hidden="true">
              <span className="left" style={{ width: "100%" }} />
            </span>
            <b>{report.agents}</b>
          </li>
          {steps.map((s) => (
            <li key={`${s.check} ${s.slot}`}>
              <span>
                <b>−{s.count}</b> {t(...checkPhrase(s.check, s.slot))}
              </span>
              <span className="track" aria-hidden="true">
                <span className="left" style={{ width: part(s.left) }} />
                <span className="gone" style={{ width: part(s.before - s.left) }} />
              </span>
              <b>{s.left}</b>
            </li>
          ))}
        </ol>
      ) : null}
      {nearest ? (
        <p>
          {t("Nearest: {{machine}} has {{free}} {{slot}} free, but the session requests {{requested}}.", {
            machine: nearest.agent,
            free: amount(nearest.slot, nearest.free),
            slot: slotName(nearest.slot),
            requested: amount(nearest.slot, nearest.requested),
          })}
        </p>
      ) : null}
      {report.limits.map((l) => (
        <p key={`${l.scope} ${l.holder} ${l.what}`}>
          {t(
            "Limit of the {{scope}} {{holder}} (policy {{policy}}): {{used}} of {{limit}} {{what}} in use, {{requested}} more requested.",
            {
              scope: word("HolderScope", l.scope),
              holder: l.holder,
              policy: l.policy,
              used: amount(l.what, l.used),
              limit: amount(l.what, l.limit),
              what: l.what === "sessions" ? t("sessions") : slotName(l.what),
              requested: amount(l.what, l.requested),
            },
          )}
        </p>
      ))}
    </>
  );
}
