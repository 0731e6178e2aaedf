import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Link, Outlet, useNavigate } from "@tanstack/react-router";
import { lazy, Suspense, useMemo, useState } from "react";
import { useSubscription } from "urql";
import { graphql } from "../../api/graphql";
import { useKeys } from "../../hooks/useKeys";
import { LaunchContext, type LaunchOptions, launchedInThisWindow } from "../../hooks/useLaunch";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { publishSessionChange, useSessionChanges } from "../../hooks/useSessionChanges";
import { toast } from "../../hooks/useToasts";
import { ViewerProvider, ViewerQuery } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { nameSlots } from "../../slots";
import { PasswordDialog } from "../account/PasswordDialog";
import { hasAdminPages } from "../admin/nav";
import { useInvitations } from "../folder/useInvitations";
import { FailureNote } from "../Note";
import { Banner } from "../notices/Banner";
import { Bell } from "../notices/Bell";
import { Help } from "./Help";
import { LiveDot } from "./LiveDot";
import { Mark } from "./Mark";
import { Toasts } from "./Toasts";
import { UserMenu } from "./UserMenu";
import "../folder/folder.css";

const LaunchSheet = lazy(() => import("../launch/LaunchSheet"));
const UploadTray = lazy(() => import("../folder/UploadTray"));
const Palette = lazy(() => import("./Palette"));

const SessionsChanged = graphql(`
  subscription SessionsChanged {
    sessionChanged {
      id version name type status result exitCode statusMessage slots createdAt startedAt terminatedAt
    }
  }
`);

const places = [
  { to: "/", label: "Home", key: "g h" },
  { to: "/sessions", label: "Sessions", key: "g s" },
  { to: "/serving", label: "Serving", key: "g v" },
  { to: "/chat", label: "Chat", key: "g t" },
  { to: "/queue", label: "Queue", key: "g q" },
  { to: "/data", label: "Data", key: "g d" },
  { to: "/cluster", label: "Cluster", key: "g c" },
  { to: "/admin", label: "Admin", key: "g a" },
] as const;

/** Shows the number of open invitations to folders. */
function InvitationBadge() {
  const { rows } = useInvitations();
  if (rows.length === 0) return null;
  return (
    <span className="tab-badge" aria-label={t("{{count}} invitations", { count: rows.length })}>
      {rows.length}
    </span>
  );
}

const mac = navigator.platform.startsWith("Mac");

/** Surrounds every page: navigation, search, connection state, launch sheet, toasts. */
export function Frame() {
  const { data, failure, refetch } = useLiveQuery({ query: ViewerQuery });
  const [palette, paletteOpen] = useDisclosure(false);
  const [help, helpOpen] = useDisclosure(false);
  const [password, passwordOpen] = useDisclosure(false);
  const [draft, setWish] = useState<LaunchOptions | null>(null);
  const navigate = useNavigate();
  const viewer = data?.viewer;
  useMemo(() => nameSlots(data?.slotTypes ?? []), [data?.slotTypes]);
  const shown = places.filter((p) => p.to !== "/admin" || (viewer && hasAdminPages(viewer)));
  const launch = (begin: LaunchOptions = {}) => setWish(begin);

  useSubscription({ query: SessionsChanged }, (_, change) => {
    publishSessionChange(change.sessionChanged);
    return change;
  });
  useSessionChanges(({ id, name, status }) => {
    if (status !== "RUNNING" || !launchedInThisWindow.delete(id)) return;
    const to = `/sessions/${id}`;
    if (location.pathname !== to) toast({ text: t("{{name}} is running.", { name }), link: { label: t("Open"), to } });
  });
  useKeys({
    "mod+k": paletteOpen.toggle,
    "?": helpOpen.open,
    l: () => launch(),
    "/": () => document.querySelector<HTMLInputElement>("[data-filter]")?.focus(),
    ...Object.fromEntries(shown.map((p) => [p.key, () => void navigate({ to: p.to })])),
  });

  if (!viewer) {
    return (
      <main className="page">
        <h1>Berth</h1>
        {failure ? (
          <FailureNote failure={failure} what={t("The server does not respond")} />
        ) : (
          <p className="dim">{t("Loading…")}</p>
        )}
      </main>
    );
  }
  return (
    <ViewerProvider value={viewer}>
      <LaunchContext.Provider value={launch}>
        <a className="skip" href="#main">
          {t("Skip to content")}
        </a>
        <header className="bar">
          <Link to="/" className="wordmark" aria-label={t("Berth, home")}>
            <Mark /> Berth
          </Link>
          <nav className="places" aria-label={t("Main navigation")}>
            {shown.map((p) => (
              <Link
                key={p.to}
                to={p.to}
                activeOptions={{ exact: p.to === "/" }}
                activeProps={{ className: "active", "aria-current": "page" }}
              >
                {t(p.label)}
                {p.to === "/data" ? <InvitationBadge /> : null}
              </Link>
            ))}
          </nav>
          <div className="push" />
          <button type="button" className="finder" onClick={paletteOpen.open}>
            <span>{t("Search or run a command")}</span>
            <span className="key hint" aria-hidden="true">
              {mac ? "⌘K" : "Ctrl K"}
            </span>
          </button>
          <LiveDot />
          <Bell />
          <Button onClick={() => launch()} title={t("Launch a session (L)")}>
            {t("Launch")}
          </Button>
          <UserMenu onPassword={passwordOpen.open} onHelp={helpOpen.open} />
        </header>
        {viewer.initialPassword ? (
          <div className="notice" role="status">
            {t("You are still using the generated initial password.")}
            <button type="button" className="linkish" onClick={passwordOpen.open}>
              {t("Change it")}
            </button>
          </div>
        ) : null}
        <Banner />
        <main className="page" id="main" tabIndex={-1}>
          <Outlet />
        </main>
        <Toasts />
        <PasswordDialog opened={password} onClose={passwordOpen.close} onChanged={refetch} />
        <Help opened={help} onClose={helpOpen.close} />
        <Suspense>
          <UploadTray />
          {palette ? <Palette onClose={paletteOpen.close} onHelp={helpOpen.open} /> : null}
          {draft ? <LaunchSheet draft={draft} onClose={() => setWish(null)} /> : null}
        </Suspense>
      </LaunchContext.Provider>
    </ViewerProvider>
  );
}
