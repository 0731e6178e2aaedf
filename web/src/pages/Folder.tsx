import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Link, useNavigate, useParams, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { useSubscription } from "urql";
import { graphql } from "../api/graphql";
import { uploads } from "../api/transfer";
import { Confirm } from "../components/Confirm";
import { FailureNote } from "../components/Note";
import { bytes } from "../components/format";
import { Browser } from "../components/folder/Browser";
import { Leave } from "../components/folder/Leave";
import { NameDialog } from "../components/folder/NameDialog";
import { ShareDialog } from "../components/folder/ShareDialog";
import { UploadList } from "../components/folder/UploadList";
import { type Found, dropped, goodFolderName, join } from "../components/folder/dropped";
import { FolderFields } from "../components/folder/folder";
import { useAction } from "../hooks/useAction";
import { useLaunch } from "../hooks/useLaunch";
import { useLiveQuery } from "../hooks/useLiveQuery";
import { toast } from "../hooks/useToasts";
import { t } from "../i18n";
import { Lost } from "./Lost";

const FolderQuery = graphql(`
  query Folder($id: ID!) {
    node(id: $id) {
      ... on Vfolder {
        ...FolderFields
      }
    }
  }
`, [FolderFields]);
const FolderChanged = graphql(`
  subscription FolderChanged($id: ID!) {
    vfolderChanged(id: $id) { id name status quotaScope { id usedBytes limitBytes } mountedBy { id version name status } }
  }
`);
const UpdateVfolder = graphql(`
  mutation UpdateVfolder($input: UpdateVfolderInput!) { updateVfolder(input: $input) { vfolder { id name } } }
`);
const TrashVfolder = graphql(`
  mutation TrashVfolder($input: TrashVfolderInput!) { trashVfolder(input: $input) { vfolder { id status } } }
`);

export function Folder() {
  const { id } = useParams({ from: "/frame/data/$id" });
  const { path = "" } = useSearch({ from: "/frame/data/$id" });
  const navigate = useNavigate({ from: "/data/$id" });
  const launch = useLaunch();
  const { data, failure } = useLiveQuery({ query: FolderQuery, variables: { id } });
  useSubscription({ query: FolderChanged, variables: { id } });
  const rename = useAction(UpdateVfolder);
  const remove = useAction(TrashVfolder);
  const [renaming, renameOpen] = useDisclosure(false);
  const [removing, removeOpen] = useDisclosure(false);
  const [sharing, shareOpen] = useDisclosure(false);
  const [leaving, leaveOpen] = useDisclosure(false);
  const [over, setOver] = useState(false);

  const folder = data?.node && "quotaScope" in data.node ? data.node : null;
  if (data && !folder) return <Lost />;
  if (!folder) {
    return (
      <>
        <h1>{t("Folder")}</h1>
        <FailureNote failure={failure} />
      </>
    );
  }
  const send = (files: Found[]) => uploads.add(id, files.map((f) => ({ ...f, path: join(path, f.path) })));
  const { quotaScope: scope } = folder;
  const owns = folder.permissions.includes("update");
  const writes = folder.permissions.includes("write");
  const shared = folder.myShare?.status === "accepted" && !folder.project ? folder.myShare : null;
  return (
    <>
      <div className="page-head">
        <div className="row">
          <Link to="/data" className="prose">{t("Data")}</Link>
          <span className="dim" aria-hidden="true">/</span>
          <h1>{folder.name}</h1>
        </div>
        <span className="dim">
          {folder.project ? `${t("project")} ${folder.project.name}` : folder.owner?.email} · {scope.volume.name}
          {scope.usedBytes === null ? "" : ` · ${bytes(scope.usedBytes)}${scope.limitBytes ? ` ${t("of")} ${bytes(scope.limitBytes)}` : ""} ${t("used in the scope")}`}
        </span>
        <div className="push row">
          <Button variant="default" onClick={() => launch({ folder: id })}>
            {t("Launch with it")}
          </Button>
          {owns ? (
            <>
              <Button variant="default" onClick={shareOpen.open}>
                {t("Share")}
              </Button>
              <Button variant="default" onClick={renameOpen.open}>
                {t("Rename")}
              </Button>
            </>
          ) : null}
          {folder.permissions.includes("delete") ? (
            <Button variant="outline" color="red" onClick={removeOpen.open}>
              {t("Delete")}
            </Button>
          ) : null}
          {shared ? (
            <Button variant="outline" color="red" onClick={leaveOpen.open}>
              {t("Leave")}
            </Button>
          ) : null}
        </div>
      </div>
      {writes ? null : <p className="dim">{t("You may read the files here, not change them.")}</p>}
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
      <div className={`drop-zone${over ? " over" : ""}`}
        onDragOver={(e) => { if (!writes) return; e.preventDefault(); setOver(true); }}
        onDragLeave={(e) => { if (!e.currentTarget.contains(e.relatedTarget as Node | null)) setOver(false); }}
        onDrop={(e) => {
          e.preventDefault();
          setOver(false);
          if (!writes) return;
          dropped(e.dataTransfer).then(send, (error) => toast({ failure: { code: "INVALID_ARGUMENT", message: String(error) } }));
        }}>
        <Browser key={path} folder={id} name={folder.name} path={path} writes={writes} onFiles={send}
          onOpen={(next) => void navigate({ search: { path: next || undefined } })} />
      </div>
      <UploadList folder={id} />
      {sharing ? <ShareDialog folder={folder} onClose={shareOpen.close} /> : null}
      <Leave share={leaving ? shared : null} onClose={leaveOpen.close} onLeft={() => void navigate({ to: "/data" })} />
      <NameDialog opened={renaming} title={t("Rename the folder")} action={t("Rename")} initial={folder.name} mutation={rename}
        valid={goodFolderName} onClose={renameOpen.close} onName={(name) => rename.run({ input: { id, name } })} />
      <Confirm opened={removing} title={t("Delete this folder?")} action={t("Put into the trash")} busy={remove.busy} failure={remove.failure}
        onClose={() => { remove.clear(); removeOpen.close(); }}
        onConfirm={async () => {
          if (!(await remove.run({ input: { id } }))) return;
          toast({ text: t("{{name}} is in the trash.", { name: folder.name }) });
          await navigate({ to: "/data" });
        }}>
        {t("{{name}} goes into the trash with all its files. Its name is free at once.", { name: folder.name })}
      </Confirm>
    </>
  );
}
