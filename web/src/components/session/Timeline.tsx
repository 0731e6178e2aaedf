import { t } from "../../i18n";
import { brief, clock, duration } from "../format";
import { type TimelineSession, timeline } from "./timeline";

const words = {
  queued: "Pending",
  placed: "Scheduled",
  pulling: "Pulling",
  starting: "Starting",
  running: "Running",
  ended: "Ended",
};

export function Timeline({ session, now }: { session: TimelineSession; now: number }) {
  return (
    <ol className="timeline">
      {timeline(session, now).map((step) => (
        <li key={step.key} className={step.state} aria-current={step.state === "now" ? "step" : undefined}>
          <i aria-hidden="true" />
          <b>{t(words[step.key])}</b>
          {step.at ? (
            <time dateTime={step.at}>{clock(step.at)}</time>
          ) : step.state === "skipped" ? (
            t("not needed")
          ) : (
            "–"
          )}
          {step.took !== null ? <div>{step.state === "now" ? duration(step.took) : brief(step.took)}</div> : null}
        </li>
      ))}
    </ol>
  );
}
