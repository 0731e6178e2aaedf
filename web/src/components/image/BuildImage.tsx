import { Autocomplete, Button, Checkbox, FileInput, Modal, Progress, Select, Textarea, TextInput } from "@mantine/core";
import { useDebouncedValue, useDisclosure } from "@mantine/hooks";
import { useState } from "react";
import type { Failure } from "../../api/errors";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { t } from "../../i18n";
import { useImageSearch } from "../launch/useOffer";
import { FailureNote } from "../Note";
import { type BuildKind, examples, gitInput, needsBase, noRepository, takesBase, toBase64 } from "./build";
import { maxInline, sendFiles } from "./buildFiles";
import { GitFields } from "./GitFields";

const BuildImageMutation = graphql(`
  mutation BuildImage($input: BuildImageInput!) {
    buildImage(input: $input) { build { id } }
  }
`);

interface Props {
  projects: readonly { id: string; name: string }[];
  onStarted: (build: string) => void;
}

/** The form that starts a build. */
export function BuildImage({ projects, onStarted }: Props) {
  const [opened, { open, close }] = useDisclosure(false);
  const [name, setName] = useState("");
  const [kind, setKind] = useState<BuildKind>("RECIPE");
  const [typed, setTyped] = useState<string | null>(null);
  const [base, setBase] = useState("");
  const [files, setFiles] = useState<File | null>(null);
  const [repository, setRepository] = useState(noRepository);
  const [project, setProject] = useState("");
  const [shared, setShared] = useState(false);
  const [cpu, setCpu] = useState("1");
  const [mem, setMem] = useState("2g");
  const [sending, setSending] = useState<number | null>(null);
  const [refused, setRefused] = useState<Failure | null>(null);
  const start = useAction(BuildImageMutation);

  const [settled] = useDebouncedValue(base.trim(), 200);
  const bases = useImageSearch(takesBase(kind) ? settled : "")?.images ?? [];
  const usual = useImageSearch(opened ? "python" : "")?.images[0]?.name ?? "python:1";
  const text = typed ?? examples(usual)[kind];

  function choose(next: BuildKind) {
    if (!text.trim()) setTyped(null);
    setKind(next);
  }
  /** Sends a large archive, and returns the fields of the input for the files; null if it fails. */
  async function send() {
    if (!files) return {};
    if (files.size <= maxInline) return { context: await toBase64(files) };
    setRefused(null);
    setSending(0);
    try {
      return { files: await sendFiles(files, setSending) };
    } catch (error) {
      setRefused(error as Failure);
      return null;
    } finally {
      setSending(null);
    }
  }
  async function run() {
    const [path = "", tag] = name.trim().split(":");
    const sent = kind === "GIT" ? gitInput(repository) : await send();
    if (!sent) return;
    const input = {
      name: path,
      kind,
      text: kind === "GIT" ? "" : text,
      shared,
      slots: { cpu, mem },
      ...(tag ? { tag } : {}),
      ...(takesBase(kind) && base.trim() ? { base: base.trim() } : {}),
      ...(project ? { project } : {}),
      ...sent,
    };
    const done = await start.run({ input });
    if (!done) return;
    close();
    onStarted(done.buildImage.build.id);
  }
  return (
    <>
      <Button onClick={open}>{t("Build an image")}</Button>
      <Modal
        opened={opened}
        onClose={close}
        size="xl"
        title={t("Build an image")}
        closeButtonProps={{ "aria-label": t("Close") }}
      >
        <div className="stack">
          <TextInput
            label={t("Image name")}
            description={t("Lower-case letters and digits, and a tag after a colon, such as torch-env:2.")}
            value={name}
            data-autofocus
            onChange={(e) => setName(e.currentTarget.value)}
          />
          <Select
            label={t("Build from")}
            data={[
              { value: "RECIPE", label: t("Recipe") },
              { value: "DOCKERFILE", label: "Dockerfile" },
              { value: "REQUIREMENTS", label: "requirements.txt" },
              { value: "ENVIRONMENT", label: "environment.yml" },
              { value: "DEVCONTAINER", label: "devcontainer.json" },
              { value: "GIT", label: t("Git repository") },
            ]}
            value={kind}
            allowDeselect={false}
            onChange={(v) => choose((v ?? "RECIPE") as BuildKind)}
          />
          {takesBase(kind) ? (
            <Autocomplete
              label={t("Base image")}
              description={
                kind === "GIT"
                  ? t("A registered image to install a list of packages on. Optional for other descriptions.")
                  : t("A registered image, such as {{name}}.", { name: usual })
              }
              value={base}
              data={[...new Set(bases.map((i) => i.name))]}
              filter={({ options }) => options}
              onChange={setBase}
            />
          ) : null}
          {kind === "GIT" ? (
            <GitFields value={repository} onChange={setRepository} />
          ) : (
            <>
              <Textarea
                label={t("Description of the build")}
                value={text}
                autosize
                minRows={10}
                maxRows={24}
                spellCheck={false}
                styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
                onChange={(e) => setTyped(e.currentTarget.value)}
              />
              <FileInput
                label={t("Files")}
                description={t(
                  "A tar archive of files for COPY, compressed with gzip or not. A large one is sent in parts before the build starts. Optional.",
                )}
                accept=".tar,.tgz,.gz"
                value={files}
                clearable
                clearButtonProps={{ "aria-label": t("Remove the files") }}
                onChange={setFiles}
              />
            </>
          )}
          <div className="row">
            <TextInput label={t("CPU cores")} w={110} value={cpu} onChange={(e) => setCpu(e.currentTarget.value)} />
            <TextInput label={t("Memory")} w={110} value={mem} onChange={(e) => setMem(e.currentTarget.value)} />
            <Select
              label={t("Project")}
              data={[
                { value: "", label: t("My default project") },
                ...projects.map((p) => ({ value: p.id, label: p.name })),
              ]}
              value={project}
              allowDeselect={false}
              onChange={(id) => setProject(id ?? "")}
            />
          </div>
          <Checkbox
            label={t("Members of the project can use the image")}
            checked={shared}
            onChange={(e) => setShared(e.currentTarget.checked)}
          />
          {sending !== null && files ? (
            <Progress value={(100 * sending) / files.size} aria-label={t("Files that were sent")} />
          ) : null}
          <FailureNote failure={refused ?? start.failure} />
          <div className="row" style={{ justifyContent: "flex-end" }}>
            <Button variant="default" onClick={close}>
              {t("Cancel")}
            </Button>
            <Button
              onClick={() => void run()}
              loading={start.busy || sending !== null}
              disabled={
                !name.trim() ||
                (kind === "GIT" ? !repository.address.trim() : !text.trim()) ||
                (needsBase(kind) && !base.trim())
              }
            >
              {t("Build")}
            </Button>
          </div>
        </div>
      </Modal>
    </>
  );
}
