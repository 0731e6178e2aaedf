import { Modal, Button, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { byField } from "../../api/errors";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { FailureNote } from "../Note";
import { goodFolderName } from "./dropped";

const CreateVfolder = graphql(`
  mutation CreateVfolder($input: CreateVfolderInput!) { createVfolder(input: $input) { vfolder { id name status } } }
`);
export const VolumesToChoose = graphql(`query VolumesToChoose { volumes { id name backend health } }`);

/** Asks for what a new folder needs. */
export function CreateFolder({ onClose, onCreated }: { onClose: () => void; onCreated: (id: string) => void }) {
  const { projects } = useViewer();
  const { data } = useLiveQuery({ query: VolumesToChoose });
  const [name, setName] = useState("");
  const [project, setProject] = useState("");
  const [volume, setVolume] = useState("");
  const { run, busy, failure } = useAction(CreateVfolder);
  const { field, rest } = byField(failure, ["name", "project", "volume"]);
  const bad = name !== "" && !goodFolderName(name);
  const volumes = data?.volumes ?? [];

  async function submit(event: React.FormEvent) {
    event.preventDefault();
    const done = await run({ input: { name, ...(project ? { project } : {}), ...(volume ? { volume } : {}) } });
    if (!done) return;
    onClose();
    onCreated(done.createVfolder.vfolder.id);
  }
  return (
    <Modal opened onClose={onClose} title={<h2>{t("New folder")}</h2>} closeButtonProps={{ "aria-label": t("Close") }}>
      <form className="stack" onSubmit={submit}>
        <TextInput label={t("Name")} description={t("Letters, digits, dot, dash, underscore; at most 64. One that begins with a dot is mounted into each of your sessions.")} value={name} data-autofocus
          onChange={(e) => setName(e.currentTarget.value)} error={field.name ?? (bad ? t("Such a name is not possible.") : undefined)} />
        {projects.length > 0 ? (
          <Select label={t("Belongs to")} value={project} onChange={(p) => setProject(p ?? "")} error={field.project} allowDeselect={false}
            data={[{ value: "", label: t("me") }, ...projects.map((p) => ({ value: p.id, label: `${t("project")} ${p.name}` }))]} />
        ) : null}
        {volumes.length > 1 ? (
          <Select label={t("Volume")} value={volume} onChange={(v) => setVolume(v ?? "")} error={field.volume} allowDeselect={false}
            data={[{ value: "", label: t("the first that takes it") }, ...volumes.map((v) => ({ value: v.id, label: v.health === "healthy" ? v.name : `${v.name} (${t(v.health)})`, disabled: v.health === "unavailable" }))]} />
        ) : null}
        <FailureNote failure={rest} />
        <Button type="submit" loading={busy} disabled={!goodFolderName(name)}>
          {t("Create")}
        </Button>
      </form>
    </Modal>
  );
}
