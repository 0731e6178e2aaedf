import { Fragment } from "react";
import { t } from "../../i18n";
import { phaseWord, readable, stateWord, word, type words } from "../../words";
import { brief, clock, when } from "../format";
import { Empty } from "../Note";

type Result = keyof (typeof words)["EventResult"];

interface Event {
  id: string;
  at: string;
  phase: string;
  fromStatus: string | null;
  toStatus: string | null;
  result: Result;
  attempt: number;
  code: string;
  message: string;
  steps: { name: string; startedAt: string; endedAt: string; ok: boolean; message: string }[];
}

const tone: Record<Result, string> = {
  SUCCESS: "tone-ok",
  RETRY: "tone-wait",
  FAILURE: "tone-bad",
  EXPIRED: "tone-bad",
  INFO: "tone-done",
};

export function Events({ events }: { events: Event[] }) {
  if (events.length === 0) return <Empty title={t("No events yet")} />;
  return (
    <div className="panel scroll-x">
      <table className="grid">
        <thead>
          <tr>
            <th>{t("Time")}</th>
            <th>{t("Phase")}</th>
            <th>{t("Change")}</th>
            <th>{t("Result")}</th>
            <th>{t("Message")}</th>
            <th className="num">{t("Duration")}</th>
          </tr>
        </thead>
        <tbody>
          {events.map((e) => (
            <Fragment key={e.id}>
              <tr>
                <td className="nowrap" title={when(e.at)}>
                  {clock(e.at)}
                </td>
                <td>{phaseWord(e.phase)}</td>
                <td className="nowrap">
                  {e.fromStatus && e.fromStatus !== e.toStatus ? `${stateWord(e.fromStatus)} → ` : null}
                  {e.toStatus ? stateWord(e.toStatus) : null}
                </td>
                <td className={tone[e.result]}>
                  {word("EventResult", e.result)}
                  {e.attempt > 1 ? ` (${t("attempt {{n}}", { n: e.attempt })})` : null}
                </td>
                <td>
                  {e.message} {e.code ? <code className="dim">{e.code}</code> : null}
                </td>
                <td />
              </tr>
              {e.steps.map((s, i) => (
                <tr key={`${e.id} ${i}`} className="dim">
                  <td className="nowrap">{clock(s.startedAt)}</td>
                  <td colSpan={2} style={{ paddingLeft: 28 }}>
                    {readable(s.name)}
                  </td>
                  <td className={s.ok ? "" : "tone-bad"}>{s.ok ? t("done") : t("failed")}</td>
                  <td>{s.message}</td>
                  <td className="num nowrap">{brief(Date.parse(s.endedAt) - Date.parse(s.startedAt))}</td>
                </tr>
              ))}
            </Fragment>
          ))}
        </tbody>
      </table>
    </div>
  );
}
