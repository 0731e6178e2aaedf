import { t } from "../../i18n";
import { duration, when } from "../format";

export interface Cordoned {
  schedulable: boolean;
  cordonReason: string;
  drainDeadline: string | null;
  drainAction: string | null;
  drained: boolean;
  sessionsLeft: number;
}

/** That a machine takes nothing new, why, and how far its drain is; nothing for one that is open. */
export function Cordon({ agent, now }: { agent: Cordoned; now: number }) {
  if (agent.schedulable) return null;
  const reason = agent.cordonReason ? `: ${agent.cordonReason}` : "";
  if (!agent.drainDeadline) return <span className="tone-wait">{t("closed to new sessions")}{reason}</span>;
  if (agent.drained) return <span className="tone-done">{t("drained, nothing is left on it")}{reason}</span>;
  const left = Date.parse(agent.drainDeadline) - now;
  const then = agent.drainAction === "terminate" ? t("then they end") : t("then they start anew elsewhere");
  return (
    <span className="tone-wait" title={when(agent.drainDeadline)}>
      {t("drains: {{count}} sessions left", { count: agent.sessionsLeft })}
      {left > 0 ? `, ${t("{{time}} to go", { time: duration(left) })}, ${then}` : `, ${t("the deadline is over")}`}
      {reason}
    </span>
  );
}
