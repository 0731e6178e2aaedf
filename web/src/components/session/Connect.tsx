import { Modal, NumberInput, Tabs } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { useFocusBack } from "../../hooks/useFocusBack";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { t } from "../../i18n";
import { Cli, Copy, FailureNote } from "../Note";
import { type Endpoint, home, sshCommands } from "./ssh";

const ConnectQuery = graphql(
  `query ConnectSession { server { ssh { host port hostKey } } sshKeys(first: 1) { totalCount } }`,
);

interface Props {
  session: { id: string; name: string };
  onClose: () => void;
}

/** Shows how programs on the viewer's computer can reach a session: SSH, copies, editors, forwarded ports. */
export function Connect({ session, onClose }: Props) {
  useFocusBack();
  const { data, failure } = useLiveQuery({ query: ConnectQuery });
  return (
    <Modal
      opened
      onClose={onClose}
      size={720}
      title={t("Connect to {{name}}", { name: session.name })}
      closeButtonProps={{ "aria-label": t("Close") }}
    >
      <div className="stack">
        <FailureNote failure={failure} />
        {data || failure ? null : <p className="dim">{t("Loading…")}</p>}
        {data?.server.ssh && data.sshKeys.totalCount === 0 ? <NoKey /> : null}
        {data?.server.ssh ? <Ways endpoint={data.server.ssh} session={session} /> : null}
        {data && !data.server.ssh ? <NoGateway session={session} /> : null}
      </div>
    </Modal>
  );
}

function NoKey() {
  return (
    <p className="panel pad warned" role="status">
      {t("Your account has no SSH key, so SSH cannot log you in.")}{" "}
      <Link to="/account/ssh-keys">{t("Add an SSH key")}</Link>
    </p>
  );
}

/** Shown for a cluster without an SSH gateway: the command line then connects through the manager. */
function NoGateway({ session }: { session: Props["session"] }) {
  return (
    <>
      <p>
        {t(
          "This cluster has no SSH gateway. An administrator can start one. Until then, use the terminal of the session, or the command line:",
        )}
      </p>
      <Lines
        lines={[
          [t("Log in once"), `berth login ${location.origin}`],
          [t("Open a shell"), `berth session exec -it ${session.id}`],
          [t("Copy files"), `berth cp -r ./data ${session.id}:`],
          [t("Forward a port"), `berth session forward ${session.id} 8000`],
        ]}
      />
    </>
  );
}

function Ways({ endpoint, session }: { endpoint: Endpoint; session: Props["session"] }) {
  const [port, setPort] = useState<number | string>(8000);
  const lines = sshCommands(endpoint, session);
  return (
    <Tabs defaultValue="ssh" keepMounted={false}>
      <Tabs.List aria-label={t("Ways to connect")}>
        <Tabs.Tab value="ssh">{t("SSH")}</Tabs.Tab>
        <Tabs.Tab value="files">{t("Copy files")}</Tabs.Tab>
        <Tabs.Tab value="code">{t("VS Code")}</Tabs.Tab>
        <Tabs.Tab value="jetbrains">{t("JetBrains")}</Tabs.Tab>
        <Tabs.Tab value="ports">{t("Ports")}</Tabs.Tab>
      </Tabs.List>
      <Tabs.Panel value="ssh" pt="md">
        <Lines
          lines={[
            [t("Open a shell"), lines.shell],
            [t("Run a command"), lines.command],
            [t("Trust the host key of the gateway, once for each computer"), lines.trust],
            [t("Entry for ~/.ssh/config, to connect with ssh {{alias}}", { alias: lines.alias }), lines.config],
          ]}
        />
      </Tabs.Panel>
      <Tabs.Panel value="files" pt="md">
        <Lines
          lines={[
            [t("Upload"), lines.upload],
            [t("Download"), lines.download],
            [t("Mirror a local directory (the image needs rsync)"), lines.mirror],
            [t("Without an SSH key"), `berth cp -r ./data ${session.id}:`],
          ]}
        />
        <p className="dim">{t("Only files in folders are kept when the session ends.")}</p>
      </Tabs.Panel>
      <Tabs.Panel value="code" pt="md" className="stack">
        <span>{t("VS Code needs the extension Remote - SSH.")}</span>
        <span>
          <a href={lines.codeLink}>{t("Open in VS Code")}</a>
        </span>
        <Lines lines={[[t("Or at the command line"), lines.code]]} />
      </Tabs.Panel>
      <Tabs.Panel value="jetbrains" pt="md" className="stack">
        <span>{t("In JetBrains Gateway, choose SSH and a new connection, and enter:")}</span>
        <dl className="facts">
          <Fact name={t("User name")} value={session.id} />
          <Fact name={t("Host")} value={endpoint.host} />
          <Fact name={t("Port")} value={String(endpoint.port)} />
          <Fact name={t("Project directory")} value={home} />
        </dl>
      </Tabs.Panel>
      <Tabs.Panel value="ports" pt="md" className="stack">
        <NumberInput
          label={t("Port in the session")}
          min={1}
          max={65535}
          allowDecimal={false}
          w={160}
          value={port}
          onChange={setPort}
        />
        {typeof port === "number" ? (
          <Lines lines={[[t("Forward it to the same port of your computer"), lines.forward(port)]]} />
        ) : null}
      </Tabs.Panel>
    </Tabs>
  );
}

function Lines({ lines }: { lines: readonly (readonly [string, string])[] }) {
  return (
    <div className="stack">
      {lines.map(([what, line]) => (
        <div key={what} className="stack small">
          <span>{what}:</span>
          <Cli line={line} />
        </div>
      ))}
    </div>
  );
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>
        <code>{value}</code> <Copy value={value} />
      </dd>
    </>
  );
}
