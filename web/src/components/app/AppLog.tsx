import { Button, Modal } from "@mantine/core";
import { graphql } from "../../api/graphql";
import { useFocusBack } from "../../hooks/useFocusBack";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { t } from "../../i18n";
import { FailureNote } from "../Note";
import type { App } from "./app";

const AppLogQuery = graphql(`
  query AppLog($session: ID!, $app: String!, $kernel: ID) {
    node(id: $session) { ... on Session { id appLog(app: $app, kernel: $kernel) } }
  }
`);

interface Props {
  session: string;
  app: Pick<App, "name" | "title" | "kernelId">;
  onClose: () => void;
}

/** The last output of an app. */
export function AppLog({ session, app, onClose }: Props) {
  useFocusBack();
  const { data, failure, fetching, refetch } = useLiveQuery({
    query: AppLogQuery,
    variables: { session, app: app.name, kernel: app.kernelId },
  });
  const log = data?.node && "appLog" in data.node ? data.node.appLog : "";
  return (
    <Modal
      opened
      onClose={onClose}
      size={820}
      title={t("Log of {{name}}", { name: app.title })}
      closeButtonProps={{ "aria-label": t("Close") }}
    >
      <div className="stack">
        <FailureNote failure={failure} />
        {data ? (
          log ? (
            <pre className="app-log" tabIndex={0} aria-label={t("Last output")}>
              {log}
            </pre>
          ) : (
            <p className="dim">{t("No output yet.")}</p>
          )
        ) : null}
        <div className="row">
          <Button variant="default" loading={fetching} onClick={refetch}>
            {t("Refresh")}
          </Button>
        </div>
      </div>
    </Modal>
  );
}
