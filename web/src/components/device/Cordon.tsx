import { t } from "../../i18n";
import { readable } from "../../words";
import { duration, when } from "../format";

export interface Cordoned {
  schedulable: boolean;
  cordonReason: string;
  drainDeadline: string | null;
  drainAction: string | null;
  drained: boolean;
  sessionsLeft: number;
  conditions: { type: string; status: boolean; reason: string; since: string }[];
}

/** Names of the conditions of a machine. */
export const conditionWords: Record<string, string> = {
  disk_pressure: "Disk almost full",
  inode_pressure: "Few free inodes",
  memory_pressure: "Little free memory",
  runtime_unavailable: "Container runtime does not respond",
  clock_skew: "Clock is wrong",
};

/** Shows the conditions that keep new sessions away from a machine while they last. */
export function Conditions({ agent }: { agent: Cordoned }) {
  const holding = agent.conditions.filter((c) => c.status);
  return holding.map((c) => (
    <span key={c.type} className="tone-bad" title={t("since {{time}}", { time: when(c.since) })}>
      {t(conditionWords[c.type] ?? readable(c.type))}: {c.reason}. {t("No new session starts until this is resolved.")}
    </span>
  ));
}

/** Shows that a machine is cordoned, why, and the progress of a drain. Shows nothing for other machines. */
export function Cordon({ agent, now }: { agent: Cordoned; now: number }) {
  if (agent.schedulable) return null;
  const reason = agent.cordonReason ? `: ${agent.cordonReason}` : "";
  if (!agent.drainDeadline)
    return (
      <span className="tone-wait">
        {t("cordoned")}
        {reason}
      </span>
    );
  if (agent.drained)
    return (
      <span className="tone-done">
        {t("drained: no sessions left")}
        {reason}
      </span>
    );
  const left = Date.parse(agent.drainDeadline) - now;
  const then = agent.drainAction === "TERMINATE" ? t("then they are stopped") : t("then they are rescheduled");
  return (
    <span className="tone-wait" title={when(agent.drainDeadline)}>
      {t("draining: {{count}} sessions left", { count: agent.sessionsLeft })}
      {left > 0 ? `, ${t("{{time}} left", { time: duration(left) })}, ${then}` : `, ${t("the deadline has passed")}`}
      {reason}
    </span>
  );
}
