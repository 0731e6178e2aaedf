import { Button, Checkbox, Modal, NativeSelect, NumberInput, PasswordInput, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { byField } from "../../../api/errors";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { t } from "../../../i18n";
import { word } from "../../../words";
import { FailureNote } from "../../Note";
import { Mirrors } from "./Mirrors";
import { mirrorInputs, showMirrors } from "./mirror";
import { RegistryProjects } from "./RegistryProjects";
import type { Registry } from "./registry";
import { parseRetention, showRetention } from "./retention";

const CreateRegistry = graphql(
  `mutation CreateRegistry($input: CreateRegistryInput!) { createRegistry(input: $input) { registry { id name } } }`,
);
const UpdateRegistry = graphql(
  `
  mutation UpdateRegistry($input: UpdateRegistryInput!) {
    updateRegistry(input: $input) { registry { id name plainHttp } }
  }
`,
);

const fields = [
  "name",
  "host",
  "username",
  "password",
  "proxy",
  "certificates",
  "repositories",
  "scanEvery",
  "signatureKeys",
  "sweepEvery",
  "retention",
  "projects",
  "mirrors",
] as const;

interface Props {
  registry: Registry | null;
  onClose: () => void;
  onDone: () => void;
}

/** Adds a registry, or changes one: then what is left empty stays, and the host is fixed because images are named by it. */
export function RegistryForm({ registry, onClose, onDone }: Props) {
  const [draft, setDraft] = useState({
    name: registry?.name ?? "",
    host: registry?.host ?? "",
    plainHttp: registry?.plainHttp ?? false,
    username: "",
    password: "",
    proxy: registry?.proxy ?? "",
    certificates: registry?.certificates ?? "",
    repositories: (registry?.repositories ?? []).join("\n"),
    scanHours: (registry?.scanEvery ?? 0) / 3600,
    tagPolicy: registry?.tagPolicy ?? "FOLLOW",
    lazyStart: registry?.lazyStart ?? false,
    signatureKeys: registry?.signatureKeys ?? "",
    projects: (registry?.projects ?? []).map((p) => p.id),
    mirrors: showMirrors(registry?.mirrors ?? []),
    sweepHours: (registry?.sweepEvery ?? 86400) / 3600,
    retention: showRetention(registry?.retention ?? []),
  });
  const [anonymous, setAnonymous] = useState(false);
  const create = useAction(CreateRegistry);
  const update = useAction(UpdateRegistry);
  const { field, rest } = byField(create.failure ?? update.failure, [...fields]);
  const set = (more: Partial<typeof draft>) => setDraft({ ...draft, ...more });
  async function submit(event: React.FormEvent) {
    event.preventDefault();
    const { username, password, name, host, scanHours, sweepHours, retention, repositories, mirrors, ...rest } = draft;
    const rules = parseRetention(retention);
    const credentials = anonymous ? { username: "", password: "" } : username ? { username, password } : {};
    const settings = {
      ...rest,
      ...credentials,
      name,
      repositories: repositories.split(/[\s,]+/).filter(Boolean),
      scanEvery: Math.round(scanHours * 3600),
      mirrors: mirrorInputs(mirrors),
      ...(registry?.sweepable ? { sweepEvery: Math.round(sweepHours * 3600), retention: rules } : {}),
    };
    const done = registry
      ? await update.run({ input: { id: registry.id, ...settings } })
      : await create.run({ input: { host, ...settings } });
    if (!done) return;
    onDone();
    onClose();
  }
  return (
    <Modal
      opened
      onClose={onClose}
      title={<h2>{registry ? t("Edit {{name}}", { name: registry.name }) : t("Add a registry")}</h2>}
      closeButtonProps={{ "aria-label": t("Close") }}
    >
      <form className="stack" onSubmit={submit}>
        <TextInput
          label={t("Name")}
          required
          data-autofocus
          value={draft.name}
          error={field.name}
          onChange={(e) => set({ name: e.currentTarget.value })}
        />
        <TextInput
          label={t("Host and port")}
          required
          disabled={registry !== null}
          placeholder="registry.example:5000"
          value={draft.host}
          error={field.host}
          onChange={(e) => set({ host: e.currentTarget.value })}
        />
        <Checkbox
          label={t("Use plain HTTP")}
          checked={draft.plainHttp}
          onChange={(e) => set({ plainHttp: e.currentTarget.checked })}
        />
        {registry ? (
          <Checkbox
            label={t("From now on, log in without a password")}
            checked={anonymous}
            onChange={(e) => setAnonymous(e.currentTarget.checked)}
          />
        ) : null}
        <TextInput
          label={
            registry
              ? t("New user. Leave empty to keep the stored user and password.")
              : t("User, if the registry requires one")
          }
          disabled={anonymous}
          value={draft.username}
          error={field.username}
          onChange={(e) => set({ username: e.currentTarget.value })}
        />
        <PasswordInput
          label={t("Password")}
          autoComplete="off"
          disabled={anonymous}
          value={draft.password}
          error={field.password}
          onChange={(e) => set({ password: e.currentTarget.value })}
        />
        <Textarea
          label={t("Repositories that scans read")}
          description={t(
            "One name or pattern a line, such as team/*. Leave empty to read all that the registry lists.",
          )}
          autosize
          minRows={2}
          value={draft.repositories}
          error={field.repositories}
          onChange={(e) => set({ repositories: e.currentTarget.value })}
        />
        <NumberInput
          label={t("Hours between scans")}
          description={t("0: a scan starts only when you start it.")}
          min={0}
          max={720}
          value={draft.scanHours}
          error={field.scanEvery}
          onChange={(hours) => set({ scanHours: Number(hours) || 0 })}
        />
        <NativeSelect
          label={t("When the tag of an image moves")}
          value={draft.tagPolicy}
          data={[
            { value: "FOLLOW", label: word("RegistryTagPolicy", "FOLLOW") },
            { value: "PINNED", label: word("RegistryTagPolicy", "PINNED") },
          ]}
          onChange={(e) => set({ tagPolicy: e.currentTarget.value === "PINNED" ? "PINNED" : "FOLLOW" })}
        />
        <Checkbox
          label={t("Start sessions before their image is complete")}
          description={t(
            "For images in the format eStargz or zstd:chunked, on machines with FUSE. Other images are pulled as usual.",
          )}
          checked={draft.lazyStart}
          onChange={(e) => set({ lazyStart: e.currentTarget.checked })}
        />
        <TextInput
          label={t("Proxy")}
          placeholder="http://proxy.example:3128"
          value={draft.proxy}
          error={field.proxy}
          onChange={(e) => set({ proxy: e.currentTarget.value })}
        />
        <Textarea
          label={t("Trusted certificates in PEM, if the registry has its own authority")}
          autosize
          minRows={2}
          maxRows={6}
          value={draft.certificates}
          error={field.certificates}
          onChange={(e) => set({ certificates: e.currentTarget.value })}
        />
        <Textarea
          label={t("Public keys of cosign, or certificates for Notation, in PEM")}
          description={t(
            "Only images that one of them has signed can be used. Leave empty if images need no signature.",
          )}
          autosize
          minRows={2}
          maxRows={6}
          value={draft.signatureKeys}
          error={field.signatureKeys}
          onChange={(e) => set({ signatureKeys: e.currentTarget.value })}
        />
        <RegistryProjects
          known={registry?.projects ?? []}
          value={draft.projects}
          error={field.projects}
          onChange={(projects) => set({ projects })}
        />
        <Mirrors list={draft.mirrors} error={field.mirrors} onChange={(mirrors) => set({ mirrors })} />
        {registry?.sweepable ? (
          <>
            <NumberInput
              label={t("Hours between sweeps")}
              description={t("0: a sweep starts only when you start it.")}
              min={0}
              max={2160}
              value={draft.sweepHours}
              error={field.sweepEvery}
              onChange={(hours) => set({ sweepHours: Number(hours) || 0 })}
            />
            <Textarea
              label={t("Versions without a tag")}
              description={t(
                "One rule a line: the beginning of the repositories' names, the days that a version stays, and the number of versions at most, such as users/ 30 5. Other versions stay 7 days.",
              )}
              autosize
              minRows={2}
              value={draft.retention}
              error={field.retention}
              onChange={(e) => set({ retention: e.currentTarget.value })}
            />
          </>
        ) : null}
        <FailureNote failure={rest} />
        <Button type="submit" loading={create.busy || update.busy} disabled={!draft.name || !draft.host}>
          {registry ? t("Save") : t("Add")}
        </Button>
      </form>
    </Modal>
  );
}
