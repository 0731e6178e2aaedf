import { t } from "../../i18n";
import { duration, when } from "../format";
import type { SessionDetail } from "./session";

/** Shows that the machine of a session is drained, the deadline, and what happens to the session then. */
export function DrainNote({ session, now }: { session: SessionDetail; now: number }) {
  const agent = session.kernels.map((k) => k.agent).find((a) => a?.drainDeadline);
  if (!agent?.drainDeadline) return null;
  const left = Date.parse(agent.drainDeadline) - now;
  return (
    <section className="panel pad warned" aria-label={t("Drain")}>
      <b className="tone-wait" title={when(agent.drainDeadline)}>
        {t("{{machine}} is being drained", { machine: agent.name })}
      </b>
      {agent.cordonReason ? ` (${agent.cordonReason})` : null}:{" "}
      {agent.drainAction === "TERMINATE"
        ? t("this session stops in {{time}}.", { time: duration(left) })
        : t("this session restarts on another machine in {{time}}. Data in its container is lost.", {
            time: duration(left),
          })}
    </section>
  );
}
