import { Modal, Tabs } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useFocusBack } from "../../hooks/useFocusBack";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { quote } from "../format";
import { Cli } from "../Note";
import { commands, inURL, remotePath } from "./connect";
import { accessKind, type Folder } from "./folder";

interface Props {
  folder: Folder;
  /** The directory that the user has open. */
  path: string;
  writable: boolean;
  onClose: () => void;
}

/** Shows how other programs can access a folder: the command line, a network drive, SFTP, a session. */
export function Connect({ folder, path, writable, onClose }: Props) {
  useFocusBack();
  const { user } = useViewer();
  const place = remotePath(folder, accessKind(folder, user.id));
  const dav = `${location.origin}/storage/dav/`;
  const directory = place && path ? `${place}/${path}` : place;
  return (
    <Modal
      opened
      onClose={onClose}
      size={680}
      title={t("Access {{name}} from outside", { name: folder.name })}
      closeButtonProps={{ "aria-label": t("Close") }}
    >
      <Tabs defaultValue="cli" keepMounted={false}>
        <Tabs.List aria-label={t("Ways to connect")}>
          <Tabs.Tab value="cli">{t("Command line")}</Tabs.Tab>
          {directory ? <Tabs.Tab value="dav">{t("Network drive (WebDAV)")}</Tabs.Tab> : null}
          {directory ? <Tabs.Tab value="sftp">{t("SFTP")}</Tabs.Tab> : null}
          <Tabs.Tab value="session">{t("In a session")}</Tabs.Tab>
        </Tabs.List>
        <Tabs.Panel value="cli" pt="md" className="stack small">
          <span>{t("Log in once:")}</span>
          <Cli line={`berth login ${location.origin}`} />
          {commands(folder.name, path, writable).map((c) => (
            <div key={c.line} className="stack small">
              <span>{t(c.what)}:</span>
              <Cli line={c.line} />
            </div>
          ))}
          <span className="dim">{t("Interrupted transfers resume when you run the command again.")}</span>
        </Tabs.Panel>
        {directory ? (
          <>
            <Tabs.Panel value="dav" pt="md" className="stack small">
              <span>{t("WebDAV address, for Finder, Explorer, a file manager or rclone:")}</span>
              <Cli line={dav + inURL(directory)} />
              <Login email={user.email} writable={writable} />
              <span>{t("With rclone:")}</span>
              <Cli
                line={`rclone config create berth webdav url=${dav} vendor=other user=${quote(user.email)} pass=TOKEN`}
              />
              <Cli line={`rclone copy ${quote(`berth:${directory}`)} .`} />
              <Where volume={folder.quotaScope.volume.name} />
            </Tabs.Panel>
            <Tabs.Panel value="sftp" pt="md" className="stack small">
              <span>
                {t("SFTP has its own port. Ask your administrator for the port and whether SFTP is enabled.")}
              </span>
              <Cli line={`sftp -P PORT ${quote(`${user.email}@${location.hostname}`)}`} />
              <Login email={user.email} writable={writable} />
              <span>{t("Path of the folder:")}</span>
              <Cli line={`cd ${quote(directory)}`} />
              <Where volume={folder.quotaScope.volume.name} />
            </Tabs.Panel>
          </>
        ) : null}
        <Tabs.Panel value="session" pt="md" className="stack small">
          <span>
            {t("A session mounts it at {{path}}. On this page, use “Launch with this folder”. At the command line:", {
              path: `/home/work/${folder.name}`,
            })}
          </span>
          <Cli
            line={`berth run IMAGE -v ${quote(folder.name)}${writable ? "" : `:/home/work/${quote(folder.name)}:ro`} -- ls /home/work/${quote(folder.name)}`}
          />
        </Tabs.Panel>
      </Tabs>
    </Modal>
  );
}

function Login({ email, writable }: { email: string; writable: boolean }) {
  return (
    <span>
      {t("User name: {{email}}. Password: an access token, not your account password.", { email })}{" "}
      <Link to="/account/tokens">{t("Create a token")}</Link>
      {writable ? ` ${t("A token with the scope “folders” can also write.")}` : ""}
    </span>
  );
}

function Where({ volume }: { volume: string }) {
  return (
    <span className="dim">
      {t(
        "If the platform has several storage proxies, this is the address of the one that serves {{volume}}. Ask your administrator for it.",
        { volume },
      )}
    </span>
  );
}
