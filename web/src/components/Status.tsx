import { t } from "../i18n";
import { stateWord } from "../words";

export type Tone = "wait" | "busy" | "ok" | "bad" | "done";

/** Tones by enum value in lower case. */
const tones: Record<string, Tone> = {
  pending: "wait",
  scheduled: "busy",
  preparing: "busy",
  prepared: "busy",
  creating: "busy",
  running: "ok",
  terminating: "busy",
  terminated: "done",
  cancelled: "done",
  error: "bad",
  alive: "ok",
  lost: "bad",
  healthy: "ok",
  degraded: "wait",
  unhealthy: "bad",
  rejected: "done",
  cut: "done",
  disabled: "done",
  backoff: "wait",
  starting: "busy",
  active: "ok",
  inactive: "done",
  before_verification: "wait",
  deleted: "done",
  waiting: "wait",
  done: "ok",
  failed: "bad",
  succeeded: "ok",
  created: "ok",
  would_create: "ok",
  wrong: "bad",
  skipped: "done",
  open: "wait",
  used: "ok",
  revoked: "done",
  expired: "done",
  serving: "ok",
  updating: "busy",
  ready: "ok",
  draining: "busy",
  asleep: "done",
  ending: "busy",
  ended: "done",
};

/** Each tone also has a shape, so that color is never the only difference. */
const shapes: Record<Tone, React.ReactNode> = {
  wait: <circle cx="6" cy="6" r="4" fill="none" stroke="currentColor" strokeWidth="2" />,
  busy: (
    <>
      <circle cx="6" cy="6" r="4" fill="none" stroke="currentColor" strokeWidth="2" />
      <path d="M6 2a4 4 0 0 1 0 8z" fill="currentColor" />
    </>
  ),
  ok: <path d="M3 1.5 10.5 6 3 10.5z" fill="currentColor" />,
  bad: <path d="M2.5 2.5l7 7m0-7-7 7" stroke="currentColor" strokeWidth="2.2" strokeLinecap="round" />,
  done: <rect x="2.5" y="2.5" width="7" height="7" rx="1" fill="currentColor" />,
};

interface Props {
  status: string;
  /** The exit code of a batch session. */
  exitCode?: number | null;
  result?: string;
  pill?: boolean;
}

interface TonedProps {
  tone: Tone;
  /** The enum value, which the element carries in lower case for tests and scripts. */
  status: string;
  pill?: boolean;
  children: React.ReactNode;
}

/** Shows the text of a status with the color and the shape of its tone. */
export function Toned({ tone, status, pill, children }: TonedProps) {
  return (
    <span className={`status tone-${tone}${pill ? " pill" : ""}`} data-status={status.toLowerCase()}>
      <svg width="12" height="12" viewBox="0 0 12 12" aria-hidden="true">
        {shapes[tone]}
      </svg>
      {children}
    </span>
  );
}

export function Status({ status, exitCode, result, pill }: Props) {
  const failed = status === "TERMINATED" && result === "FAILURE";
  const tone = failed ? "bad" : (tones[status.toLowerCase()] ?? "done");
  const code =
    exitCode !== null && exitCode !== undefined && status === "TERMINATED" ? ` · ${t("exit code")} ${exitCode}` : "";
  return (
    <Toned tone={tone} status={status} pill={pill}>
      {stateWord(status)}
      {code}
    </Toned>
  );
}
