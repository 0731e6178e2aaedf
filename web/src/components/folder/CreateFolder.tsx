import { Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { toast } from "../../hooks/useToasts";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { stateWord } from "../../words";
import { FormDialog } from "../admin/Form";
import { nodesOf } from "../admin/usePages";
import { goodFolderName } from "./dropped";
import { autoMountText } from "./FolderAccess";
import { type Folder, type UsageMode, usageModes } from "./folder";
import { PermissionSelect } from "./PermissionSelect";
import type { FolderPermission } from "./share";

const CreateVfolder = graphql(`
  mutation CreateVfolder($input: CreateVfolderInput!) { createVfolder(input: $input) { vfolder { id name status } } }
`);
const CloneVfolder = graphql(`
  mutation CloneVfolder($input: CloneVfolderInput!) {
    cloneVfolder(input: $input) { vfolder { id name status } task { id status } }
  }
`);
const UpdateVfolder = graphql(`
  mutation UpdateVfolder($input: UpdateVfolderInput!) {
    updateVfolder(input: $input) { vfolder { id name usageMode permission autoMount } }
  }
`);
const VolumesToChoose = graphql(
  `query VolumesToChoose { volumes(first: 100, orderBy: [{ field: NAME }]) { edges { node { id name backend health } } } }`,
);

const fields = ["name", "usageMode", "project", "permission", "volume"] as const;

/** The input for a new folder. */
interface Draft {
  name: string;
  usageMode: UsageMode;
  project: string;
  permission: FolderPermission;
  volume: string;
}

interface FieldsProps {
  draft: Draft;
  set: (some: Partial<Draft>) => void;
  wrong: Record<string, string>;
  /** Whether the owner and the volume can be selected. They cannot be changed later. */
  placed: boolean;
  anyVolume: string;
}

function Fields({ draft, set, wrong, placed, anyVolume }: FieldsProps) {
  const { projects } = useViewer();
  const { data } = useLiveQuery({ query: VolumesToChoose });
  const volumes = nodesOf(data?.volumes);
  const store = projects.some((p) => p.id === draft.project && p.type === "MODEL_STORE");
  const bad = draft.name !== "" && !goodFolderName(draft.name);
  return (
    <>
      <TextInput
        label={t("Name")}
        description={t(
          "Letters, digits, dot, dash and underscore; at most 64. A folder whose name begins with a dot is mounted in every session.",
        )}
        value={draft.name}
        data-autofocus
        onChange={(e) => set({ name: e.currentTarget.value })}
        error={wrong.name ?? (bad ? t("This name is not allowed.") : undefined)}
      />
      {draft.name.startsWith(".") && !bad ? (
        <p className="dim" role="status">
          {autoMountText(draft.name, projects.find((p) => p.id === draft.project)?.name)}{" "}
          {t("Use it for settings, packages and caches.")}
        </p>
      ) : null}
      <Select
        label={t("Purpose")}
        description={
          store
            ? t(
                "The project is a model store, so its folders hold models. Members can read them, and project administrators can write.",
              )
            : t("Only a note. It does not change the folder.")
        }
        value={draft.usageMode}
        error={wrong.usageMode}
        disabled={store && draft.usageMode === "MODEL"}
        allowDeselect={false}
        data={usageModes.map((m) => ({ value: m.value, label: t(m.label) }))}
        onChange={(v) => set({ usageMode: usageModes.find((m) => m.value === v)?.value ?? draft.usageMode })}
      />
      {!placed && projects.length > 0 ? (
        <Select
          label={t("Owner")}
          description={
            draft.project
              ? t("It counts toward the quota of the project and stays when you leave the project.")
              : t("It counts toward your quota. You can share it with others.")
          }
          value={draft.project}
          onChange={(p) =>
            set({
              project: p ?? "",
              ...(projects.some((one) => one.id === p && one.type === "MODEL_STORE")
                ? { usageMode: "MODEL", permission: "READ_ONLY" }
                : {}),
            })
          }
          error={wrong.project}
          allowDeselect={false}
          data={[
            { value: "", label: t("me") },
            ...projects.map((p) => ({ value: p.id, label: t("project {{name}}", { name: p.name }) })),
          ]}
        />
      ) : null}
      {draft.project && !(store && draft.permission === "READ_ONLY") ? (
        <PermissionSelect
          label={t("Permission of members")}
          value={draft.permission}
          error={wrong.permission}
          onChange={(permission) => set({ permission })}
        />
      ) : null}
      {!placed && volumes.length > 1 ? (
        <Select
          label={t("Volume")}
          value={draft.volume}
          onChange={(v) => set({ volume: v ?? "" })}
          error={wrong.volume}
          allowDeselect={false}
          data={[
            { value: "", label: anyVolume },
            ...volumes.map((v) => ({
              value: v.id,
              label: v.health === "HEALTHY" ? v.name : `${v.name} (${stateWord(v.health).toLowerCase()})`,
              disabled: v.health === "UNAVAILABLE",
            })),
          ]}
        />
      ) : null}
    </>
  );
}

const placeOf = (d: Draft) => ({
  ...(d.project ? { project: d.project, permission: d.permission } : {}),
  ...(d.volume ? { volume: d.volume } : {}),
});

/** Asks for the settings of a new folder. */
export function CreateFolder({ onClose, onCreated }: { onClose: () => void; onCreated: (id: string) => void }) {
  const [draft, setDraft] = useState<Draft>({
    name: "",
    usageMode: "GENERAL",
    project: "",
    permission: "READ_WRITE",
    volume: "",
  });
  const { run, busy, failure } = useAction(CreateVfolder);
  async function submit() {
    const done = await run({ input: { name: draft.name, usageMode: draft.usageMode, ...placeOf(draft) } });
    if (!done) return;
    onClose();
    onCreated(done.createVfolder.vfolder.id);
  }
  return (
    <FormDialog
      title={t("New folder")}
      submit={t("Create")}
      busy={busy}
      failure={failure}
      fields={fields}
      disabled={!goodFolderName(draft.name)}
      onClose={onClose}
      onSubmit={() => void submit()}
    >
      {(wrong) => (
        <Fields
          draft={draft}
          set={(some) => setDraft({ ...draft, ...some })}
          wrong={wrong}
          placed={false}
          anyVolume={t("any available volume")}
        />
      )}
    </FormDialog>
  );
}

/** Copies a folder with all its files, in the background. */
export function CloneFolder({ folder, onClose, onDone }: { folder: Folder; onClose: () => void; onDone: () => void }) {
  const [draft, setDraft] = useState<Draft>({
    name: `${folder.name.slice(0, 59)}-copy`,
    usageMode: folder.usageMode,
    project: "",
    permission: "READ_WRITE",
    volume: "",
  });
  const { run, busy, failure } = useAction(CloneVfolder);
  async function submit() {
    if (!(await run({ input: { id: folder.id, name: draft.name, usageMode: draft.usageMode, ...placeOf(draft) } })))
      return;
    toast({ text: t("{{name}} is being copied.", { name: folder.name }) });
    onDone();
    onClose();
  }
  return (
    <FormDialog
      title={t("Clone {{name}}", { name: folder.name })}
      submit={t("Clone")}
      busy={busy}
      failure={failure}
      fields={fields}
      disabled={!goodFolderName(draft.name)}
      onClose={onClose}
      onSubmit={() => void submit()}
    >
      {(wrong) => (
        <Fields
          draft={draft}
          set={(some) => setDraft({ ...draft, ...some })}
          wrong={wrong}
          placed={false}
          anyVolume={t("same as the original")}
        />
      )}
    </FormDialog>
  );
}

/** Edits the name of a folder, its usage mode, and the permissions of the members of its project. */
export function FolderSettings({
  folder,
  onClose,
  onDone,
}: {
  folder: Folder;
  onClose: () => void;
  onDone?: () => void;
}) {
  const [draft, setDraft] = useState<Draft>({
    name: folder.name,
    usageMode: folder.usageMode,
    project: folder.project?.id ?? "",
    permission: folder.permission,
    volume: "",
  });
  const { run, busy, failure } = useAction(UpdateVfolder);
  async function submit() {
    const changed = {
      ...(draft.name === folder.name ? {} : { name: draft.name }),
      ...(draft.usageMode === folder.usageMode ? {} : { usageMode: draft.usageMode }),
      ...(draft.permission === folder.permission ? {} : { permission: draft.permission }),
    };
    if (Object.keys(changed).length > 0 && !(await run({ input: { id: folder.id, ...changed } }))) return;
    onDone?.();
    onClose();
  }
  return (
    <FormDialog
      title={t("Settings of {{name}}", { name: folder.name })}
      submit={t("Save")}
      busy={busy}
      failure={failure}
      fields={fields}
      disabled={!goodFolderName(draft.name)}
      onClose={onClose}
      onSubmit={() => void submit()}
    >
      {(wrong) => (
        <Fields draft={draft} set={(some) => setDraft({ ...draft, ...some })} wrong={wrong} placed anyVolume="" />
      )}
    </FormDialog>
  );
}
