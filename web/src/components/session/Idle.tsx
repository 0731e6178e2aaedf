import { Switch } from "@mantine/core";
import { graphql, type ResultOf } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { t } from "../../i18n";
import { duration, when } from "../format";

export const IdleParts = graphql(
  `fragment IdleParts on Session { idleExempt idle { checker kind endsAt reason warnedAt } }`,
);
type Parts = ResultOf<typeof IdleParts>;
export type IdleState = Parts["idle"];

const Exempt = graphql(
  `
  mutation SetIdleExempt($input: SetSessionIdleExemptInput!) {
    setSessionIdleExempt(input: $input) { session { id version ...IdleParts } }
  }
`,
  [IdleParts],
);

/** A stop within this many milliseconds is shown in lists. */
const shownWithin = 3600_000;

/** Shows that a session will soon be stopped because it is idle, and the remaining time. */
export function IdleBadge({ idle, now }: { idle: Parts["idle"]; now: number }) {
  if (!idle) return null;
  const left = Date.parse(idle.endsAt) - now;
  if (left > shownWithin && !idle.warnedAt) return null;
  return (
    <span className="badge tone-wait" title={`${idle.checker}: ${idle.reason} ${when(idle.endsAt)}`}>
      {idle.kind === "LIFETIME"
        ? t("stops in {{time}}", { time: duration(left) })
        : t("idle, stops in {{time}}", { time: duration(left) })}
    </span>
  );
}

/** Shows which check would stop a session next, and lets permitted users exempt the session. */
export function IdleNote({
  session,
  now,
  editable,
}: {
  session: Parts & { id: string };
  now: number;
  editable: boolean;
}) {
  const { run, busy } = useAction(Exempt, true);
  const { idle, idleExempt } = session;
  if (!idle && !idleExempt && !editable) return null;
  const left = idle ? Date.parse(idle.endsAt) - now : 0;
  return (
    <section className={`panel pad row idle${idle?.warnedAt ? " warned" : ""}`} aria-label={t("Idle check")}>
      <span role={idle?.warnedAt ? "alert" : undefined}>
        {idle ? (
          <>
            <b className={idle.warnedAt || left < shownWithin ? "tone-wait" : undefined} title={when(idle.endsAt)}>
              {left > 0 ? t("Stops in {{time}}", { time: duration(left) }) : t("Stops now")}
            </b>
            : {idle.reason}{" "}
            <span className="dim">
              ({t("idle checker {{name}}", { name: idle.checker })}
              {idle.kind === "LIFETIME" ? null : `; ${t("any activity resets the time")}`})
            </span>
          </>
        ) : idleExempt ? (
          t("This session is exempt from idle checks.")
        ) : (
          <span className="dim">{t("No idle checker would stop this session.")}</span>
        )}
      </span>
      {editable ? (
        <Switch
          className="push"
          label={t("Exempt from idle checks")}
          checked={idleExempt}
          disabled={busy}
          onChange={(e) => void run({ input: { id: session.id, exempt: e.currentTarget.checked } })}
        />
      ) : null}
    </section>
  );
}
