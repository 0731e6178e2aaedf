import { Button } from "@mantine/core";
import { useState } from "react";
import { useAction } from "../../hooks/useAction";
import { t } from "../../i18n";
import { word } from "../../words";
import { Confirm } from "../Confirm";
import { when } from "../format";
import { AppLog } from "./AppLog";
import { AppStatus } from "./AppStatus";
import { type App, openable, RestartApp, StopApp } from "./app";
import { ShareApp } from "./ShareApp";
import { untilOf } from "./share";

interface Props {
  session: string;
  app: App;
  onOpen: () => void;
  onCopy: () => void;
}

type Shown = "log" | "share" | "restart" | "stop" | null;

/** An app with its status and what can be done with it. */
export function AppRow({ session, app, onOpen, onCopy }: Props) {
  const [shown, show] = useState<Shown>(null);
  const close = () => show(null);
  const restart = useAction(RestartApp, true);
  const input = { session, app: app.name, kernel: app.kernelId };
  const active = app.status === "RUNNING" || app.status === "STARTING";
  const name = app.title;
  const small = { variant: "subtle", size: "compact-xs" } as const;
  return (
    <li className="app-row">
      <div className="app-facts">
        <div className="row tight">
          <b>{name}</b> <AppStatus status={app.status} />
        </div>
        <div className="dim">
          {t("Port {{port}}", { port: app.port })}, {word("AppSource", app.source)}
          {active || app.startable ? null : `. ${t("Start it in the session.")}`}
        </div>
        {app.lastUsedAt ? <LastUsed at={app.lastUsedAt} /> : null}
        {app.sharing ? <Shared sharing={app.sharing} /> : null}
        {app.reason ? <div className={app.status === "FAILED" ? "bad" : "dim"}>{app.reason}</div> : null}
      </div>
      <div className="row tight app-actions">
        <Button
          size="compact-sm"
          variant="light"
          disabled={!openable(app)}
          aria-label={t("Open {{name}}", { name })}
          onClick={onOpen}
        >
          {t("Open")}
        </Button>
        <Button {...small} aria-label={t("Copy link to {{name}}", { name })} onClick={onCopy}>
          {t("Copy link")}
        </Button>
        <Button {...small} aria-label={t("Share {{name}}", { name })} onClick={() => show("share")}>
          {t("Share…")}
        </Button>
        {app.startable ? (
          <>
            <Button {...small} aria-label={t("Log of {{name}}", { name })} onClick={() => show("log")}>
              {t("Log")}
            </Button>
            <Button
              {...small}
              loading={restart.busy}
              aria-label={active ? t("Restart {{name}}", { name }) : t("Start {{name}}", { name })}
              onClick={() => (active ? show("restart") : void restart.run({ input }))}
            >
              {active ? t("Restart") : t("Start")}
            </Button>
          </>
        ) : null}
        {app.startable && active ? (
          <Button {...small} color="red" aria-label={t("Stop {{name}}", { name })} onClick={() => show("stop")}>
            {t("Stop")}
          </Button>
        ) : null}
      </div>
      {shown === "log" ? <AppLog session={session} app={app} onClose={close} /> : null}
      {shown === "share" ? <ShareApp session={session} app={app} onClose={close} /> : null}
      {shown === "restart" || shown === "stop" ? <End way={shown} name={name} input={input} onClose={close} /> : null}
    </li>
  );
}

/** When a user last used the app. */
function LastUsed({ at }: { at: string }) {
  return <div className="dim">{t("Last used: {{at}}", { at: when(at) })}</div>;
}

function Shared({ sharing }: { sharing: NonNullable<App["sharing"]> }) {
  const until = untilOf(sharing);
  return (
    <div className="dim">
      {t("Shared with: {{audience}}", { audience: word("AppAudience", sharing.audience) })}
      {sharing.networks.length > 0 ? `, ${t("from {{networks}}", { networks: sharing.networks.join(", ") })}` : ""}
      {until ? `, ${t("until {{at}}", { at: until })}` : ""}
    </div>
  );
}

interface EndProps {
  way: "restart" | "stop";
  name: string;
  input: { session: string; app: string; kernel: string };
  onClose: () => void;
}

/** Asks for a confirmation before a running app is stopped or restarted. */
function End({ way, name, input, onClose }: EndProps) {
  const { run, busy, failure } = useAction(way === "stop" ? StopApp : RestartApp);
  return (
    <Confirm
      opened
      title={way === "stop" ? t("Stop {{name}}?", { name }) : t("Restart {{name}}?", { name })}
      action={way === "stop" ? t("Stop") : t("Restart")}
      busy={busy}
      failure={failure}
      onClose={onClose}
      onConfirm={async () => {
        if (await run({ input })) onClose();
      }}
    >
      {t("Everything that runs in the app ends, and its unsaved work is lost. Files and the session are kept.")}
    </Confirm>
  );
}
