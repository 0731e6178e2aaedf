import { Button, Menu } from "@mantine/core";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { t } from "../../i18n";
import { AppStatus } from "./AppStatus";
import { type App, AppsQuery, appsOf, openable } from "./app";
import { useOpenApp } from "./useOpenApp";

interface Props {
  session: { id: string; name: string };
  /** Whether the menu is a button of a page, not of a table row. */
  big?: boolean;
}

/** A menu of the apps of a running session. They are read when the menu opens. */
export function AppMenu({ session, big }: Props) {
  const [opened, setOpened] = useState(false);
  const { open, busy } = useOpenApp();
  return (
    <Menu opened={opened} onChange={setOpened} position="bottom-end" withinPortal>
      <Menu.Target>
        <Button
          variant="default"
          {...(big ? {} : { size: "compact-xs" })}
          loading={busy}
          aria-label={t("Open an app of {{name}}", { name: session.name })}
        >
          {t("Open")}
        </Button>
      </Menu.Target>
      <Menu.Dropdown>
        {opened ? (
          <Items
            session={session.id}
            onOpen={(app) => void open({ session: session.id, app: app.name, kernel: app.kernelId })}
          />
        ) : null}
      </Menu.Dropdown>
    </Menu>
  );
}

function Items({ session, onOpen }: { session: string; onOpen: (app: App) => void }) {
  const navigate = useNavigate();
  const { data, failure } = useLiveQuery({ query: AppsQuery, variables: { session, kernel: null } });
  const apps = appsOf(data);
  return (
    <>
      {failure ? <Menu.Label>{failure.message}</Menu.Label> : null}
      {apps ? null : failure ? null : <Menu.Label>{t("Loading…")}</Menu.Label>}
      {apps?.length === 0 ? <Menu.Label>{t("No apps")}</Menu.Label> : null}
      {(apps ?? []).map((app) => (
        <Menu.Item
          key={app.name}
          disabled={!openable(app)}
          rightSection={<AppStatus status={app.status} />}
          onClick={() => onOpen(app)}
        >
          {app.title}
          {app.reason ? (
            <div className={app.status === "FAILED" ? "bad" : "dim"} style={{ maxWidth: 320, whiteSpace: "normal" }}>
              {app.reason}
            </div>
          ) : null}
        </Menu.Item>
      ))}
      <Menu.Divider />
      <Menu.Item
        onClick={() => void navigate({ to: "/sessions/$id", params: { id: session }, search: { tab: "apps" } })}
      >
        {t("All apps and ports")}
      </Menu.Item>
    </>
  );
}
