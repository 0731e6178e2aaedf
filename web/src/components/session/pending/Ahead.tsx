import { Link } from "@tanstack/react-router";
import { t } from "../../../i18n";
import { duration } from "../../format";
import { type Report, stageWord } from "./report";

/** Lists the sessions at the head of the queue that are before this session. */
export function Ahead({ report, now }: { report: Report; now: number }) {
  const more = report.position - 1 - report.ahead.length;
  if (report.ahead.length === 0) return null;
  return (
    <div>
      <h3>{t("Ahead in the queue")}</h3>
      <ol className="rows" aria-label={t("Ahead in the queue")}>
        {report.ahead.map((e) => (
          <li key={e.position}>
            <b>{e.position}</b>
            <span>
              {e.session ? (
                <Link to="/sessions/$id" params={{ id: e.session.id }}>
                  {e.session.name}
                </Link>
              ) : (
                <span className="dim">{t("a session of another user")}</span>
              )}
            </span>
            <span className="dim push">
              {t("pending for {{time}}", { time: duration(now - Date.parse(e.waitingSince)) })} ·{" "}
              {t(stageWord(e.stage))}
            </span>
          </li>
        ))}
      </ol>
      {more > 0 ? <p className="dim">{t("and {{count}} more", { count: more })}</p> : null}
    </div>
  );
}
