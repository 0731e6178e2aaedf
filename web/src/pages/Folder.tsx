import { Button } from "@mantine/core";
import { useDebouncedCallback, useDisclosure } from "@mantine/hooks";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useMemo } from "react";
import { useSubscription } from "urql";
import { graphql } from "../api/graphql";
import type { Found } from "../api/incoming";
import { Browser } from "../components/folder/Browser";
import { Connect } from "../components/folder/Connect";
import { DropZone } from "../components/folder/DropZone";
import { FolderAccess } from "../components/folder/FolderAccess";
import { FolderMenu } from "../components/folder/FolderMenu";
import { FolderTasks, useTaskChanges } from "../components/folder/FolderTasks";
import { accessKind, FolderFields, ownerOf } from "../components/folder/folder";
import { folderStore } from "../components/folder/folderStore";
import { sendFiles } from "../components/folder/sendFiles";
import { bytes } from "../components/format";
import { FailureNote } from "../components/Note";
import "../components/folder/folder.css";
import { SharesChanged } from "../components/folder/useInvitations";
import { useLaunch } from "../hooks/useLaunch";
import { useLiveQuery } from "../hooks/useLiveQuery";
import { useViewer } from "../hooks/useViewer";
import { t } from "../i18n";
import { NotFound } from "./NotFound";

const FolderQuery = graphql(`query Folder($id: ID!) { node(id: $id) { ... on Vfolder { ...FolderFields } } }`, [
  FolderFields,
]);
const FolderChanged = graphql(`
  subscription FolderChanged($id: ID!) {
    vfolderChanged(id: $id) {
      id name status usedBytes fileCount quotaScope { id usedBytes limitBytes: effectiveLimitBytes }
      mountedBy { id version name status }
    }
  }
`);

export function Folder() {
  const { id } = useParams({ from: "/frame/data/$id" });
  const { path = "" } = useSearch({ from: "/frame/data/$id" });
  const navigate = useNavigate({ from: "/data/$id" });
  const launch = useLaunch();
  const me = useViewer().user.id;
  const { data, failure, refetch } = useLiveQuery({ query: FolderQuery, variables: { id } });
  const again = useDebouncedCallback(refetch, { delay: 300, maxWait: 300 });
  useSubscription({ query: FolderChanged, variables: { id } });
  useSubscription({ query: SharesChanged }, (_, change) => {
    if (change.vfolderShareChanged.mine) again();
    return change;
  });
  useTaskChanges(id, again);
  const [connecting, connect] = useDisclosure(false);

  const folder = data?.node && "quotaScope" in data.node ? data.node : null;
  const name = folder?.name ?? "";
  const store = useMemo(() => folderStore(id, name), [id, name]);
  if (data && !folder) return <NotFound />;
  if (!folder) {
    return (
      <>
        <h1>{t("Folder")}</h1>
        <FailureNote failure={failure} />
      </>
    );
  }
  const send = (files: Found[]) => sendFiles({ id, name: folder.name }, path, files);
  const { quotaScope: scope } = folder;
  const ready = folder.status === "READY";
  const writable = ready && folder.permissions.includes("WRITE_FILES");
  const of = accessKind(folder, me);
  const facts = [
    folder.project ? t("project {{name}}", { name: folder.project.name }) : ownerOf(folder),
    scope.volume.name,
    folder.usedBytes === null ? null : bytes(folder.usedBytes),
    scope.usedBytes === null || of === "shared" || of === "others"
      ? null
      : `${bytes(scope.usedBytes)}${scope.limitBytes === null ? "" : ` ${t("of")} ${bytes(scope.limitBytes)}`} ${t("used in the quota scope")}`,
  ].filter(Boolean);
  return (
    <>
      <div className="page-head">
        <div className="row">
          <Link to="/data" className="prose">
            {t("Data")}
          </Link>
          <span className="dim" aria-hidden="true">
            /
          </span>
          <h1>{folder.name}</h1>
        </div>
        <span className="dim">{facts.join(" · ")}</span>
        <div className="push row">
          {ready ? (
            <Button variant="default" onClick={() => launch({ folder: id, readOnly: !writable })}>
              {t("Launch with this folder")}
            </Button>
          ) : null}
          {ready ? (
            <Button variant="default" onClick={connect.open}>
              {t("Connect")}
            </Button>
          ) : null}
          <FolderMenu
            big
            folder={folder}
            onChanged={refetch}
            onGone={() => void navigate({ to: "/data", search: {} })}
          />
        </div>
      </div>
      {connecting ? <Connect folder={folder} path={path} writable={writable} onClose={connect.close} /> : null}
      <FolderTasks tasks={folder.tasks} editable={folder.permissions.includes("UPDATE")} />
      <FolderAccess folder={folder} writable={writable} />
      {folder.mountedBy.length > 0 ? (
        <p className="dim prose">
          {t("Mounted by")}{" "}
          {folder.mountedBy.map((s, i) => (
            <span key={s.id}>
              {i > 0 ? ", " : ""}
              <Link to="/sessions/$id" params={{ id: s.id }}>
                {s.name}
              </Link>
            </span>
          ))}
        </p>
      ) : null}
      {ready ? (
        <DropZone enabled={writable} onFiles={send}>
          <Browser
            key={path}
            store={store}
            folder={id}
            path={path}
            writable={writable}
            onFiles={send}
            onOpen={(next) => void navigate({ search: { path: next || undefined } })}
          />
        </DropZone>
      ) : null}
    </>
  );
}
