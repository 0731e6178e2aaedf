import { Tabs, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { useAction } from "../../../hooks/useAction";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { toast } from "../../../hooks/useToasts";
import { useViewer } from "../../../hooks/useViewer";
import { t } from "../../../i18n";
import { slotsLine, when } from "../../format";
import { FailureNote } from "../../Note";
import { Status } from "../../Status";
import { Form } from "../Form";
import { SidePanel } from "../Panel";
import { LifecycleButtons } from "./LifecycleButtons";
import { Limits } from "./Limits";
import { Members } from "./Members";
import { DeleteProject, type OneProject, ProjectQuery, UpdateProject } from "./project";
import { projectTypes } from "./projecttype";
import { adminOf, can } from "./rights";
import { VolumeAccess } from "./VolumeAccess";
import { canListVolumeUsers } from "./volumes";

interface Props {
  id: string;
  onClose: () => void;
  /** Called after the project was deleted. */
  onGone: () => void;
}

/** Shows one project: its members, its limits and its name. */
export function ProjectPanel({ id, onClose, onGone }: Props) {
  const viewer = useViewer();
  const { data, failure, refetch, fetching } = useLiveQuery({ query: ProjectQuery, variables: { id } });
  const update = useAction(UpdateProject);
  const purge = useAction(DeleteProject);
  const project = data?.node && "memberships" in data.node ? data.node : null;
  if (!project) {
    return (
      <SidePanel title={t("Project")} onClose={onClose}>
        <FailureNote failure={failure} />
        <p className="dim">
          {fetching ? t("Loading…") : t("This project does not exist, or you do not have access to it.")}
        </p>
      </SidePanel>
    );
  }
  const admin = adminOf(viewer, project.domain.id);
  const holder = { kind: "project" as const, id: project.id, name: project.name };
  return (
    <SidePanel title={project.name} onClose={onClose}>
      <dl className="facts">
        <dt>{t("Status")}</dt>
        <dd className="row">
          <Status status={project.active ? "ACTIVE" : "INACTIVE"} />
          {can(project, "DELETE") ? (
            <LifecycleButtons
              name={project.name}
              active={project.active}
              busy={update.busy || purge.busy}
              failure={update.failure ?? purge.failure}
              deactivated={t(
                "No new session starts in it. Running sessions are not affected, and folders and members stay. You can activate it again.",
              )}
              purged={t(
                "You cannot delete a project that has active sessions or folders. Its memberships and the history of its sessions are deleted with it.",
              )}
              onActive={async (active) => Boolean(await update.run({ input: { id, active } }))}
              onPurge={async () => {
                if (!(await purge.run({ input: { id, name: project.name } }))) return false;
                toast({ text: t("{{name}} was deleted.", { name: project.name }) });
                onGone();
                return true;
              }}
              onClear={() => {
                update.clear();
                purge.clear();
              }}
            />
          ) : null}
        </dd>
        <dt>{t("Domain")}</dt>
        <dd>{project.domain.name}</dd>
        <dt>{t("Type")}</dt>
        <dd>{t(projectTypes[project.type])}</dd>
        <dt>{t("Created")}</dt>
        <dd>{when(project.createdAt)}</dd>
        <dt>{t("Resources in use")}</dt>
        <dd>{slotsLine(project.occupied) || t("nothing")}</dd>
        {can(project, "UPDATE") || !project.description ? null : (
          <>
            <dt>{t("Description")}</dt>
            <dd>{project.description}</dd>
          </>
        )}
      </dl>
      <Tabs defaultValue="members" keepMounted={false}>
        <Tabs.List aria-label={t("About {{name}}", { name: project.name })}>
          <Tabs.Tab value="members">{t("Members")}</Tabs.Tab>
          <Tabs.Tab value="limits">{t("Limits")}</Tabs.Tab>
          {canListVolumeUsers(viewer) ? <Tabs.Tab value="volumes">{t("Volumes")}</Tabs.Tab> : null}
          {can(project, "UPDATE") ? <Tabs.Tab value="name">{t("Name")}</Tabs.Tab> : null}
        </Tabs.List>
        <Tabs.Panel value="members" pt="md">
          <Members project={project} />
        </Tabs.Panel>
        <Tabs.Panel value="limits" pt="md">
          <Limits holder={holder} attached={project.policies} mayAttach={admin} onChanged={refetch} />
        </Tabs.Panel>
        <Tabs.Panel value="volumes" pt="md">
          <VolumeAccess holder={holder} />
        </Tabs.Panel>
        <Tabs.Panel value="name" pt="md">
          <Rename key={project.id} project={project} />
        </Tabs.Panel>
      </Tabs>
    </SidePanel>
  );
}

function Rename({ project }: { project: OneProject }) {
  const { run, busy, failure } = useAction(UpdateProject);
  const [name, setName] = useState(project.name);
  const [description, setDescription] = useState(project.description);
  return (
    <Form
      failure={failure}
      fields={["name", "description"]}
      submit={t("Save")}
      busy={busy}
      disabled={name === project.name && description === project.description}
      onSubmit={async () => {
        if (await run({ input: { id: project.id, name, description } })) toast({ text: t("Saved.") });
      }}
    >
      {(wrong) => (
        <>
          <TextInput
            label={t("Name")}
            required
            value={name}
            error={wrong.name}
            onChange={(e) => setName(e.currentTarget.value)}
          />
          <Textarea
            label={t("Description")}
            autosize
            minRows={2}
            maxRows={6}
            value={description}
            error={wrong.description}
            onChange={(e) => setDescription(e.currentTarget.value)}
          />
        </>
      )}
    </Form>
  );
}
