import { Button, Modal, Select, Textarea, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { t } from "../../i18n";
import { FailureNote } from "../Note";
import { TaskState } from "../task/TaskState";

const CommitSession = graphql(`
  mutation CommitSession($input: CommitSessionInput!) {
    commitSession(input: $input) { reference task { id } }
  }
`);

interface Props {
  session: { id: string; name: string };
  projects: readonly { id: string; name: string }[];
}

/** Saves a running session as an image, and shows the progress. */
export function SaveImage({ session, projects }: Props) {
  const [opened, { open, close }] = useDisclosure(false);
  const [name, setName] = useState("");
  const [description, setDescription] = useState("");
  const [project, setProject] = useState("");
  const [made, setMade] = useState<{ reference: string; task: { id: string } } | null>(null);
  const commit = useAction(CommitSession);

  async function save() {
    const [path = "", tag] = name.trim().split(":");
    const input = {
      session: session.id,
      name: path,
      ...(tag ? { tag } : {}),
      ...(description ? { description } : {}),
      ...(project ? { project } : {}),
    };
    const done = await commit.run({ input });
    if (done) setMade(done.commitSession);
  }
  function end() {
    setMade(null);
    commit.clear();
    close();
  }
  return (
    <>
      <Button variant="default" onClick={open}>
        {t("Save as image")}
      </Button>
      <Modal
        opened={opened}
        onClose={end}
        title={t("Save {{name}} as an image", { name: session.name })}
        closeButtonProps={{ "aria-label": t("Close") }}
      >
        {made ? (
          <div className="stack">
            <code>{made.reference}</code>
            <Link to="/account/images">{t("My images")}</Link>
            <TaskState id={made.task.id} onClose={end} />
          </div>
        ) : (
          <div className="stack">
            <TextInput
              label={t("Image name")}
              description={t("Lower-case letters and digits, and a tag after a colon, such as torch-env:2.")}
              value={name}
              data-autofocus
              onChange={(e) => setName(e.currentTarget.value)}
            />
            <Textarea
              label={t("Description")}
              value={description}
              maxLength={1000}
              onChange={(e) => setDescription(e.currentTarget.value)}
            />
            <Select
              label={t("For")}
              data={[
                { value: "", label: t("Only me") },
                ...projects.map((p) => ({ value: p.id, label: t("Project {{name}}", { name: p.name }) })),
              ]}
              value={project}
              allowDeselect={false}
              onChange={(id) => setProject(id ?? "")}
            />
            <p className="dim">
              {t(
                "Folders, the home directory, variables, histories and known credential files stay out of the image. Delete other files with secrets first.",
              )}
            </p>
            <FailureNote failure={commit.failure} />
            <div className="row" style={{ justifyContent: "flex-end" }}>
              <Button variant="default" onClick={end}>
                {t("Cancel")}
              </Button>
              <Button onClick={() => void save()} loading={commit.busy} disabled={!name.trim()}>
                {t("Save")}
              </Button>
            </div>
          </div>
        )}
      </Modal>
    </>
  );
}
