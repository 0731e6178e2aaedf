import { Button, Modal, Select, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { FailureNote } from "../Note";
import { check, type LaunchDraft, savedOf } from "./request";

const CreateTemplate = graphql(`
  mutation CreateSessionTemplate($input: CreateSessionTemplateInput!) {
    createSessionTemplate(input: $input) { template { id name } }
  }
`);
const UpdateTemplate = graphql(`
  mutation UpdateSessionTemplate($input: UpdateSessionTemplateInput!) {
    updateSessionTemplate(input: $input) { template { id name updatedAt } }
  }
`);

interface Props {
  draft: LaunchDraft;
  projects: readonly { id: string; name: string }[];
}

/**
 * Saves the request as a template. With the name of the template that the form began with, it becomes a new version of
 * it.
 */
export function SaveTemplate({ draft, projects }: Props) {
  const [opened, { open, close }] = useDisclosure(false);
  const [name, setName] = useState(draft.base?.kind === "template" ? draft.base.name : "");
  const [project, setProject] = useState<string | null>(draft.base?.shared ?? null);
  const create = useAction(CreateTemplate);
  const update = useAction(UpdateTemplate);
  const { base } = draft;
  const again =
    base?.kind === "template" && base.mine && name.trim() === base.name && project === (base.shared ?? null);

  async function save() {
    const request = savedOf(draft);
    const done = again
      ? await update.run({ input: { id: base.id, request } })
      : await create.run({ input: { name: name.trim(), request, ...(project ? { project } : {}) } });
    if (!done) return;
    toast({
      text: t("Template {{name}} is saved.", { name: name.trim() }),
      link: { label: t("Show"), to: "/templates" },
    });
    close();
  }
  return (
    <>
      <Button variant="default" size="sm" onClick={open} disabled={Object.keys(check(draft)).length > 0}>
        {t("Save as template")}
      </Button>
      <Modal
        opened={opened}
        onClose={close}
        title={t("Save as template")}
        closeButtonProps={{ "aria-label": t("Close") }}
      >
        <div className="stack">
          <TextInput
            label={t("Template name")}
            value={name}
            data-autofocus
            onChange={(e) => setName(e.currentTarget.value)}
          />
          <Select
            label={t("For")}
            description={t("Admins of a project can save templates for all of its members.")}
            data={[
              { value: "", label: t("Only me") },
              ...projects.map((p) => ({ value: p.id, label: t("Project {{name}}", { name: p.name }) })),
            ]}
            value={project ?? ""}
            allowDeselect={false}
            onChange={(id) => setProject(id || null)}
          />
          <FailureNote failure={create.failure ?? update.failure} />
          <div className="row" style={{ justifyContent: "flex-end" }}>
            <Button variant="default" onClick={close}>
              {t("Cancel")}
            </Button>
            <Button onClick={() => void save()} loading={create.busy || update.busy} disabled={!name.trim()}>
              {again ? t("Save changes") : t("Save")}
            </Button>
          </div>
        </div>
      </Modal>
    </>
  );
}
