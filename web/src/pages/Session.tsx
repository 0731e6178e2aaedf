import { Button, Tabs, TextInput, VisuallyHidden } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { lazy, Suspense, useMemo, useState } from "react";
import { useSubscription } from "urql";
import { AppMenu } from "../components/app/AppMenu";
import { Apps } from "../components/app/Apps";
import { duration } from "../components/format";
import { Leaderless } from "../components/frame/Leaderless";
import { FailureNote } from "../components/Note";
import { Status } from "../components/Status";
import { Again } from "../components/session/Again";
import { Config } from "../components/session/Config";
import { Connect } from "../components/session/Connect";
import { DrainNote } from "../components/session/Drain";
import { Events } from "../components/session/Events";
import { Files } from "../components/session/Files";
import { IdleNote } from "../components/session/Idle";
import { Logs } from "../components/session/Logs";
import { Metrics } from "../components/session/Metrics";
import { MountsNote } from "../components/session/Mounts";
import { Pending } from "../components/session/pending/Pending";
import { SaveImage } from "../components/session/SaveImage";
import { RenameSession, SessionChanged, type SessionDetail, SessionQuery } from "../components/session/session";
import { Tags } from "../components/session/Tags";
import { Terminate } from "../components/session/Terminate";
import { Timeline } from "../components/session/Timeline";
import { ended } from "../components/session/timeline";
import { useAction } from "../hooks/useAction";
import { useLiveQuery } from "../hooks/useLiveQuery";
import { useNow } from "../hooks/useNow";
import { administers, useViewer } from "../hooks/useViewer";
import { t } from "../i18n";
import { word } from "../words";
import { NotFound } from "./NotFound";

const Terminal = lazy(() => import("../components/session/Terminal"));

export function Session() {
  const { id } = useParams({ from: "/frame/sessions/$id" });
  const { data, failure } = useLiveQuery({ query: SessionQuery, variables: { id } });
  useSubscription({ query: SessionChanged, variables: { id } });
  const session = data?.node as SessionDetail | null | undefined;
  if (data && !session?.name) return <NotFound />;
  if (!session) {
    return (
      <>
        <h1>{t("Session")}</h1>
        <FailureNote failure={failure} />
      </>
    );
  }
  return <Detail session={session} key={id} />;
}

function Detail({ session }: { session: SessionDetail }) {
  const search = useSearch({ from: "/frame/sessions/$id" });
  const navigate = useNavigate({ from: "/sessions/$id" });
  const viewer = useViewer();
  const [ending, ask] = useDisclosure(false);
  const [connecting, connect] = useDisclosure(false);
  const over = ended(session.status);
  const running = session.status === "RUNNING";
  const canConnect = session.permissions.includes("ENTER");
  const now = useNow(!over);
  const batch = session.type === "BATCH";
  const tab = search.tab ?? (batch || over ? "logs" : "terminal");
  const kernel = session.kernels.find((k) => k.role === "MAIN") ?? session.kernels[0];
  const since = session.startedAt ?? session.createdAt;
  const until = session.terminatedAt ? Date.parse(session.terminatedAt) : now;
  const ran = useMemo(
    () => (session.terminatedAt ? { from: since, to: session.terminatedAt } : null),
    [since, session.terminatedAt],
  );

  return (
    <>
      <div className="page-head">
        <Name id={session.id} name={session.name} fixed={over} />
        <Status status={session.status} exitCode={session.exitCode} result={session.result} pill />
        <span className="dim" title={session.startedAt ? t("since it started running") : t("since it was requested")}>
          {duration(until - Date.parse(since))}
        </span>
        <div className="push row">
          {running && canConnect ? (
            <>
              <AppMenu session={session} big />
              <Button variant="default" onClick={connect.open}>
                {t("Connect")}
              </Button>
            </>
          ) : null}
          {running && canConnect ? <SaveImage session={session} projects={viewer.projects} /> : null}
          {canConnect ? <Again session={session} over={over} own={session.owner?.id === viewer.user.id} /> : null}
          {over ? null : (
            <Button variant="outline" color="red" onClick={ask.open} disabled={session.status === "TERMINATING"}>
              {t("Stop")}
            </Button>
          )}
        </div>
      </div>
      <Tags session={session} editable={session.permissions.includes("UPDATE")} />
      {session.statusMessage && over ? (
        <p className={session.status === "ERROR" ? "bad" : "dim"}>
          {session.statusMessage}
          {session.terminationReason ? ` (${word("TerminationReason", session.terminationReason)})` : ""}
        </p>
      ) : null}
      <section className="panel pad scroll-x" aria-label={t("Timeline")} tabIndex={0}>
        <Timeline session={session} now={now} />
      </section>
      {session.status === "PENDING" ? <Leaderless /> : null}
      {session.pending && session.status === "PENDING" ? (
        <Pending
          session={session.id}
          report={session.pending}
          editable={session.permissions.includes("UPDATE")}
          now={now}
        />
      ) : null}
      {over ? null : <DrainNote session={session} now={now} />}
      {over ? null : <MountsNote session={session} />}
      {running ? <IdleNote session={session} now={now} editable={administers(viewer)} /> : null}
      <Tabs
        value={tab}
        keepMounted={false}
        onChange={(value) => void navigate({ search: { tab: value ?? undefined }, replace: true })}
      >
        <Tabs.List aria-label={t("Session tabs")}>
          <Tabs.Tab value="terminal">{t("Terminal")}</Tabs.Tab>
          <Tabs.Tab value="apps">{t("Apps")}</Tabs.Tab>
          <Tabs.Tab value="files">{t("Files")}</Tabs.Tab>
          <Tabs.Tab value="logs">{t("Logs")}</Tabs.Tab>
          <Tabs.Tab value="metrics">{t("Metrics")}</Tabs.Tab>
          <Tabs.Tab value="events">{t("Events")}</Tabs.Tab>
          <Tabs.Tab value="config">{t("Config")}</Tabs.Tab>
        </Tabs.List>
        <div style={{ paddingTop: 12 }}>
          <Tabs.Panel value="terminal">
            <Suspense fallback={<p className="dim">{t("Loading…")}</p>}>
              <Terminal session={session.id} status={session.status} />
            </Suspense>
          </Tabs.Panel>
          <Tabs.Panel value="apps">
            <Apps
              session={session.id}
              live={running}
              over={over}
              canConnect={canConnect}
              main={kernel?.id ?? null}
              kernels={session.kernels}
            />
          </Tabs.Panel>
          <Tabs.Panel value="files">
            <Files
              session={session}
              live={running}
              over={over}
              canConnect={canConnect}
              kernels={session.kernels}
              path={search.path?.replace(/^\//, "")}
              onOpen={(path) => void navigate({ search: { tab: "files", path: `/${path}` } })}
            />
          </Tabs.Panel>
          <Tabs.Panel value="logs">
            <Logs
              session={session.id}
              name={session.name}
              kernel={kernel?.id ?? null}
              begun={session.startedAt !== null || over}
            />
          </Tabs.Panel>
          <Tabs.Panel value="metrics">
            <Metrics session={session.id} live={running} usage={session.usage} kernels={session.kernels} ran={ran} />
          </Tabs.Panel>
          <Tabs.Panel value="events">
            <Events events={session.history} />
          </Tabs.Panel>
          <Tabs.Panel value="config">
            <Config session={session} />
          </Tabs.Panel>
        </div>
      </Tabs>
      {connecting ? <Connect session={session} onClose={connect.close} /> : null}
      <Terminate sessions={[session]} opened={ending} onClose={ask.close} />
    </>
  );
}

/** The heading. A click turns it into an input that renames the session. */
function Name({ id, name, fixed }: { id: string; name: string; fixed: boolean }) {
  const [editing, setEditing] = useState(false);
  const [text, setText] = useState(name);
  const { run, failure, clear } = useAction(RenameSession);
  if (!editing) {
    return (
      <div className="row">
        <h1>{name}</h1>
        {fixed ? null : (
          <Button
            variant="subtle"
            size="compact-xs"
            onClick={() => {
              setText(name);
              clear();
              setEditing(true);
            }}
          >
            {t("Rename")}
          </Button>
        )}
      </div>
    );
  }
  return (
    <form
      className="row"
      onSubmit={async (event) => {
        event.preventDefault();
        if (await run({ input: { id, name: text } })) setEditing(false);
      }}
    >
      <VisuallyHidden component="h1">{name}</VisuallyHidden>
      <TextInput
        aria-label={t("Name")}
        value={text}
        autoFocus
        onChange={(e) => setText(e.currentTarget.value)}
        error={
          failure
            ? `${failure.message}${failure.requestId ? ` (${failure.code}, ${failure.requestId})` : ""}`
            : undefined
        }
        onKeyDown={(e) => e.key === "Escape" && setEditing(false)}
      />
      <Button type="submit" variant="light">
        {t("Save")}
      </Button>
      <Button variant="subtle" onClick={() => setEditing(false)}>
        {t("Cancel")}
      </Button>
    </form>
  );
}
