import { Button, Select } from "@mantine/core";
import { useState } from "react";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { t } from "../../i18n";
import { Empty, FailureNote } from "../Note";
import { AppRow } from "./AppRow";
import { AppsQuery, appsOf } from "./app";
import { OpenPort } from "./OpenPort";
import { useOpenApp } from "./useOpenApp";
import { useRefresh } from "./useRefresh";
import "./app.css";

interface Props {
  session: string;
  /** The session runs. */
  live: boolean;
  /** The session has ended. */
  over: boolean;
  /** The viewer can connect to the session. */
  canConnect: boolean;
  /** The main container, which is shown first. */
  main: string | null;
  kernels: readonly { id: string; hostname: string }[];
}

/** The programs of a session that are used in the browser. */
export function Apps(props: Props) {
  if (!props.canConnect)
    return (
      <div className="panel">
        <Empty title={t("No access to the apps")}>
          {t("You do not have the permission to connect to this session.")}
        </Empty>
      </div>
    );
  if (props.live) return <List {...props} />;
  return (
    <div className="panel">
      <Empty title={t("No apps")}>
        {props.over ? t("The apps ended with the session.") : t("Apps are available when the session runs.")}
      </Empty>
    </div>
  );
}

function List({ session, main, kernels }: Props) {
  const [kernel, setKernel] = useState(main);
  const { data, failure, fetching, refetch } = useLiveQuery({ query: AppsQuery, variables: { session, kernel } });
  const apps = appsOf(data);
  const { open, copyAddress } = useOpenApp();
  const follow = useRefresh(
    refetch,
    (apps ?? []).some((a) => a.status === "STARTING"),
  );
  async function opened(input: { app: string } | { port: number }, running: boolean) {
    if ((await open({ session, kernel, ...input })) && !running) follow();
  }
  return (
    <section className="panel" aria-label={t("Apps")}>
      <div className="panel-head">
        <h2>{t("Apps")}</h2>
        <div className="push row tight">
          {kernels.length > 1 ? (
            <Select
              aria-label={t("Container")}
              size="xs"
              allowDeselect={false}
              value={kernel}
              onChange={setKernel}
              data={kernels.map((k) => ({ value: k.id, label: k.hostname }))}
            />
          ) : null}
          <Button variant="subtle" size="compact-sm" loading={fetching} onClick={refetch}>
            {t("Refresh")}
          </Button>
        </div>
      </div>
      <FailureNote failure={failure} what={t("The apps could not be loaded")} />
      {apps ? null : failure ? null : <p className="dim app-note">{t("Loading…")}</p>}
      {apps?.length === 0 ? (
        <p className="dim app-note">
          {t("The image has no known apps, and no program listens on a port. Start one in the terminal, then refresh.")}
        </p>
      ) : null}
      <ul className="rows">
        {(apps ?? []).map((app) => (
          <AppRow
            key={app.name}
            session={session}
            app={app}
            onOpen={() => void opened({ app: app.name }, app.status === "RUNNING")}
            onCopy={() => void copyAddress(app.address)}
          />
        ))}
      </ul>
      <div className="panel-foot">
        <OpenPort onOpen={(port) => void opened({ port }, true)} />
      </div>
    </section>
  );
}
