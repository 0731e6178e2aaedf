import { Button, VisuallyHidden } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { t } from "../../i18n";
import { AppMenu } from "./AppMenu";
import { AppStatus } from "./AppStatus";
import type { App } from "./app";
import { useOpenApp } from "./useOpenApp";

/** The number of buttons; other apps are in the menu. */
const maxButtons = 2;
const order: Record<App["status"], number> = { FAILED: 0, STARTING: 1, RUNNING: 2, STOPPED: 3 };

interface Props {
  session: { id: string; name: string };
  apps: readonly App[];
}

/**
 * Shows the apps of a session in a table row: a button for each app that runs or starts, the error of a failed one,
 * and a menu of all apps.
 */
export function AppButtons({ session, apps }: Props) {
  const { open } = useOpenApp();
  const shown = apps
    .filter((a) => a.status !== "STOPPED")
    .sort((a, b) => order[a.status] - order[b.status])
    .slice(0, maxButtons);
  return (
    <div className="row tight" style={{ flexWrap: "nowrap" }}>
      {shown.map((app) =>
        app.status === "FAILED" ? (
          <Link
            key={app.name}
            to="/sessions/$id"
            params={{ id: session.id }}
            search={{ tab: "apps" }}
            title={app.reason}
          >
            {app.title} <AppStatus status={app.status} />
            <VisuallyHidden>
              : {app.reason} ({session.name})
            </VisuallyHidden>
          </Link>
        ) : (
          <Button
            key={app.name}
            size="compact-xs"
            variant="light"
            aria-label={
              app.status === "STARTING"
                ? t("Open {{app}} of {{name}}, which is starting", { app: app.title, name: session.name })
                : t("Open {{app}} of {{name}}", { app: app.title, name: session.name })
            }
            rightSection={app.status === "STARTING" ? <AppStatus status={app.status} /> : null}
            onClick={() => void open({ session: session.id, app: app.name, kernel: app.kernelId })}
          >
            {app.title}
          </Button>
        ),
      )}
      <AppMenu session={session} />
    </div>
  );
}
