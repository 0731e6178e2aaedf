import { Button, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { byField } from "../../api/errors";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { toast } from "../../hooks/useToasts";
import { useViewer } from "../../hooks/useViewer";
import { language, t } from "../../i18n";
import { FormDialog } from "../admin/Form";
import { Confirm } from "../Confirm";
import { bytes } from "../format";
import { goodFolderName } from "./dropped";
import type { Folder } from "./folder";

const TrashVfolder = graphql(
  `mutation TrashVfolder($input: TrashVfolderInput!) { trashVfolder(input: $input) { vfolder { id status deletedAt } } }`,
);
const RestoreVfolder = graphql(
  `mutation RestoreVfolder($input: RestoreVfolderInput!) { restoreVfolder(input: $input) { vfolder { id name status } } }`,
);
const DeleteVfolder = graphql(
  `
  mutation DeleteVfolder($input: DeleteVfolderInput!) {
    deleteVfolder(input: $input) { vfolder { id status } task { id status } }
  }
`,
);
const EmptyTrash = graphql(`mutation EmptyTrash($input: EmptyTrashInput!) { emptyTrash(input: $input) { count } }`);

/** Shows the content of a folder, so that the user sees what would be deleted. */
function Holds({ folder }: { folder: Folder }) {
  if (folder.usedBytes === null && folder.fileCount === null) return null;
  return (
    <>
      {" "}
      {t("It contains {{files}} files ({{size}}).", {
        files: folder.fileCount?.toLocaleString(language()) ?? "?",
        size: bytes(folder.usedBytes ?? 0),
      })}
    </>
  );
}

interface Props {
  folder: Folder | null;
  onClose: () => void;
  onDone: () => void;
}

/** Asks for a confirmation before a folder is moved to the trash. */
export function TrashConfirm({ folder, onClose, onDone }: Props) {
  const { run, busy, failure, clear } = useAction(TrashVfolder);
  const close = () => {
    clear();
    onClose();
  };
  return (
    <Confirm
      opened={folder !== null}
      title={t("Move {{name}} to the trash?", { name: folder?.name ?? "" })}
      action={t("Move to trash")}
      busy={busy}
      failure={failure}
      onClose={close}
      onConfirm={async () => {
        if (!folder || !(await run({ input: { id: folder.id } }))) return;
        toast({ text: t("{{name}} was moved to the trash.", { name: folder.name }) });
        close();
        onDone();
      }}
    >
      {folder ? (
        <>
          {t(
            "Its files stay and count toward the quota until the folder is deleted permanently. You can restore it until then.",
          )}
          <Holds folder={folder} />
        </>
      ) : null}
    </Confirm>
  );
}

/** Asks for a confirmation before a folder in the trash is deleted permanently. */
export function DeleteConfirm({ folder, onClose, onDone }: Props) {
  const { run, busy, failure, clear } = useAction(DeleteVfolder);
  const close = () => {
    clear();
    onClose();
  };
  if (!folder) return null;
  return (
    <Confirm
      opened
      title={t("Delete {{name}} permanently?", { name: folder.name })}
      action={t("Delete permanently")}
      typed={folder.name}
      busy={busy}
      failure={failure}
      onClose={close}
      onConfirm={async () => {
        if (!(await run({ input: { id: folder.id } }))) return;
        toast({ text: t("{{name}} is being deleted.", { name: folder.name }) });
        close();
        onDone();
      }}
    >
      {t("All files in {{name}} are deleted. This cannot be undone.", { name: folder.name })}
      <Holds folder={folder} />
    </Confirm>
  );
}

/** Restores a folder from the trash. Asks for another name only if its name is taken. */
export function RestoreButton({ folder, onDone }: { folder: Folder; onDone: () => void }) {
  const { run, busy, failure, clear } = useAction(RestoreVfolder);
  const [name, setName] = useState("");
  const [asking, setAsking] = useState(false);
  async function restore(other?: string) {
    clear();
    const done = await run({ input: { id: folder.id, ...(other ? { name: other } : {}) } });
    if (!done) return setAsking(true);
    setAsking(false);
    toast({
      text: t("{{name}} was restored.", { name: done.restoreVfolder.vfolder.name }),
      link: { label: t("Open"), to: `/data/${folder.id}` },
    });
    onDone();
  }
  return (
    <>
      <Button
        variant="subtle"
        size="compact-xs"
        loading={busy}
        aria-label={t("Restore {{name}}", { name: folder.name })}
        onClick={() => {
          setName(folder.name);
          void restore();
        }}
      >
        {t("Restore")}
      </Button>
      {asking && failure ? (
        <FormDialog
          title={t("Restore {{name}}", { name: folder.name })}
          submit={t("Restore")}
          busy={busy}
          failure={failure}
          fields={["name"]}
          disabled={!goodFolderName(name) || (name === folder.name && byField(failure, ["name"]).rest === null)}
          onClose={() => {
            setAsking(false);
            clear();
          }}
          onSubmit={() => void restore(name === folder.name ? undefined : name)}
        >
          {(wrong) => (
            <TextInput
              label={t("Name")}
              value={name}
              error={wrong.name}
              data-autofocus
              onChange={(e) => setName(e.currentTarget.value)}
            />
          )}
        </FormDialog>
      ) : null}
    </>
  );
}

/** Permanently deletes all folders in the trash of the viewer or of a project. */
export function EmptyTrashButton({ rows, whole, onDone }: { rows: Folder[]; whole: boolean; onDone: () => void }) {
  const viewer = useViewer();
  const { run, busy, failure, clear } = useAction(EmptyTrash);
  const [project, setProject] = useState("");
  const [asking, setAsking] = useState(false);
  const projects = viewer.projects.filter((p) => rows.some((f) => f.project?.id === p.id));
  const going = rows.filter(
    (f) => f.permissions.includes("DELETE") && (project ? f.project?.id === project : f.owner?.id === viewer.user.id),
  );
  const close = () => {
    clear();
    setAsking(false);
  };
  return (
    <>
      <Button variant="outline" color="red" onClick={() => setAsking(true)}>
        {t("Empty trash")}
      </Button>
      {asking ? (
        <Confirm
          opened
          title={t("Empty the trash?")}
          action={t("Delete permanently")}
          typed={t("empty")}
          busy={busy}
          failure={failure}
          onClose={close}
          onConfirm={async () => {
            const done = await run({ input: project ? { project } : {} });
            if (!done) return;
            toast({ text: t("{{count}} folders are being deleted.", { count: done.emptyTrash.count }) });
            close();
            onDone();
          }}
        >
          <div className="stack">
            {projects.length > 0 ? (
              <Select
                label={t("Owner of the trash")}
                value={project}
                allowDeselect={false}
                onChange={(p) => setProject(p ?? "")}
                data={[
                  { value: "", label: t("me") },
                  ...projects.map((p) => ({ value: p.id, label: t("project {{name}}", { name: p.name }) })),
                ]}
              />
            ) : null}
            <span>{t("These folders and all their files are deleted. This cannot be undone.")}</span>
            <ul style={{ margin: 0, paddingLeft: 18 }}>
              {going.slice(0, 8).map((f) => (
                <li key={f.id}>
                  <b>{f.name}</b>
                  {f.usedBytes === null ? "" : ` ${bytes(f.usedBytes)}`}
                </li>
              ))}
              {going.length > 8 ? <li>{t("and {{count}} more", { count: going.length - 8 })}</li> : null}
              {whole ? null : <li>{t("and folders that are not listed yet")}</li>}
              {whole && going.length === 0 ? <li className="dim">{t("none")}</li> : null}
            </ul>
          </div>
        </Confirm>
      ) : null}
    </>
  );
}
