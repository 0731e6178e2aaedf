import { Button, Checkbox, Drawer, NumberInput, Select, Textarea, TextInput } from "@mantine/core";
import { useLocalStorage } from "@mantine/hooks";
import { useNavigate } from "@tanstack/react-router";
import { type FormEvent, useEffect, useRef, useState } from "react";
import { byField } from "../../api/errors";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { Amounts } from "../launch/Amounts";
import { Folders } from "../launch/Folders";
import { Images } from "../launch/Images";
import { Places } from "../launch/Places";
import { Presets } from "../launch/Presets";
import { Preview } from "../launch/Preview";
import { recentImages } from "../launch/recent";
import type { LaunchDraft } from "../launch/request";
import { useOffer } from "../launch/useOffer";
import { FailureNote } from "../Note";
import {
  atField,
  checkDraft,
  type DeployDraft,
  deploymentInput,
  draftOf,
  isCustom,
  newDraft,
  revisionInput,
  trialOf,
  withFolderIds,
} from "./draft";
import { EngineOptions } from "./EngineOptions";
import { useRevisions } from "./Revisions";
import {
  AddRevision,
  CreateDeployment,
  type DeploymentDetail,
  inLine,
  type Revision,
  type Variant,
  VariantsQuery,
} from "./serving";
import "../launch/launch.css";
import "./serving.css";

interface Props {
  /** The deployment that gets a new revision; without it, a new deployment is created. */
  deployment?: DeploymentDetail;
  onClose: () => void;
}

/** The form for a new deployment, or for a new revision that begins as the current one. */
export default function DeploySheet({ deployment, onClose }: Props) {
  const { data, failure } = useLiveQuery({ query: VariantsQuery });
  const variants = data?.modelVariants;
  return (
    <Drawer
      opened
      onClose={onClose}
      position="right"
      size={560}
      title={deployment ? t("New revision of {{name}}", { name: deployment.name }) : t("Deploy a model")}
      closeButtonProps={{ "aria-label": t("Close") }}
      classNames={{ content: "launch-sheet", body: "launch-body" }}
    >
      <FailureNote failure={failure} what={t("The engines could not be loaded")} />
      {variants && deployment ? <Begun deployment={deployment} variants={variants} onClose={onClose} /> : null}
      {variants && !deployment ? <Fields variants={variants} onClose={onClose} /> : null}
    </Drawer>
  );
}

/** Loads the current revision of a deployment. */
function Begun({
  deployment: d,
  variants,
  onClose,
}: {
  deployment: DeploymentDetail;
  variants: readonly Variant[];
  onClose: () => void;
}) {
  const { revisions, failure } = useRevisions(d);
  const offer = useOffer([], { image: "", project: null, group: null });
  const begun = revisions.find((r) => r.number === d.current);
  if (!begun || !offer.loaded) return <FailureNote failure={failure} what={t("The revisions could not be loaded")} />;
  return <Fields deployment={d} begun={withFolderIds(begun, offer.folders)} variants={variants} onClose={onClose} />;
}

const launchFields = ["image", "command", "slots.cpu", "slots.mem", "slots", "mounts", "resourceGroup", "environment"];
const fields = [
  "name",
  "description",
  "project",
  "variant",
  "model",
  "subpath",
  "port",
  "health",
  "comment",
  "scaling.min",
  "scaling.max",
  ...launchFields.map((f) => `request.${f}`),
];

interface FieldsProps extends Props {
  begun?: Revision;
  variants: readonly Variant[];
}

function Fields({ deployment, begun, variants, onClose }: FieldsProps) {
  const viewer = useViewer();
  const navigate = useNavigate();
  const [recent] = useLocalStorage(recentImages);
  const form = useRef<HTMLFormElement>(null);
  const [tried, setTried] = useState(false);
  const [typed, setDraft] = useState<DeployDraft>(() =>
    begun ? draftOf(begun, variants) : newDraft(viewer.projects[0]?.id ?? null, viewer.resourceGroups[0]?.id ?? null),
  );
  const offer = useOffer(recent, typed.launch);
  const launch: LaunchDraft = {
    ...typed.launch,
    image: typed.launch.image || (offer.images[0]?.reference ?? ""),
    slot: typed.launch.slot || (offer.slots[0] ?? ""),
  };
  const draft = { ...typed, launch };
  const set = (more: Partial<DeployDraft>) => setDraft((d) => ({ ...d, ...more }));
  const setLaunch = (more: Partial<LaunchDraft>) => setDraft((d) => ({ ...d, launch: { ...d.launch, ...more } }));
  const create = useAction(CreateDeployment);
  const add = useAction(AddRevision);
  const variant = variants.find((v) => v.name === draft.variant);
  const optionFields = (variant?.options ?? []).map((o) => `options.${o.name}`);
  const refusal = atField(create.failure ?? add.failure);
  const { field: refused, rest } = byField(refusal, [...optionFields, ...fields]);
  const found = checkDraft(draft, !deployment);
  const wrong: Record<string, string> = { ...refused, ...(tried ? found : {}) };
  const errorOf = (field: string) => wrong[field] && t(wrong[field]);
  const inLaunch = Object.fromEntries(
    Object.entries(wrong).flatMap(([k, v]) =>
      k.startsWith("request.") ? [[k.slice(8), v]] : k === "project" ? [[k, v]] : [],
    ),
  );
  useEffect(() => {
    if (refusal || tried) form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [refusal, tried]);

  async function submit(event: FormEvent) {
    event.preventDefault();
    setTried(true);
    if (Object.keys(found).length > 0) {
      setTimeout(() => form.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus());
      return;
    }
    if (deployment) {
      const input = { deployment: deployment.id, revision: revisionInput(draft, begun) };
      if (await add.run({ input })) onClose();
      return;
    }
    const done = await create.run({ input: deploymentInput(draft) });
    if (!done) return;
    onClose();
    await navigate({ to: "/serving/$id", params: { id: done.createDeployment.deployment.id } });
  }
  return (
    <form ref={form} onSubmit={submit} noValidate>
      <div className="launch-fields stack">
        <FailureNote failure={offer.failure} />
        {deployment ? (
          <p className="dim">
            {t("It begins as revision {{number}}. Its replicas replace the others as the strategy says.", {
              number: deployment.current,
            })}
          </p>
        ) : (
          <>
            <TextInput
              label={t("Name")}
              description={t("The name of the model in requests.")}
              required
              data-autofocus
              maxLength={63}
              value={draft.name}
              error={errorOf("name")}
              onChange={(e) => set({ name: e.currentTarget.value })}
            />
            <TextInput
              label={t("Description")}
              maxLength={1000}
              value={draft.description}
              error={errorOf("description")}
              onChange={(e) => set({ description: e.currentTarget.value })}
            />
          </>
        )}
        <Select
          label={t("Engine")}
          description={isCustom(draft) ? t("Your own command serves the model.") : (variant?.command.join(" ") ?? "")}
          data={variants.map((v) => ({ value: v.name, label: v.title }))}
          value={draft.variant}
          error={errorOf("variant")}
          allowDeselect={false}
          onChange={(v) => v && set({ variant: v, options: {}, port: "", health: "", portOnly: false })}
        />
        <Images
          offer={offer}
          chosen={launch.image}
          onChoose={(image) => setLaunch({ image })}
          error={errorOf("request.image")}
        />
        <div className="pairs wider">
          <Select
            label={t("Folder with the model")}
            inputWrapperOrder={inLine}
            description={t("Mounted at /models for reading.")}
            data={[
              ...(isCustom(draft) ? [{ value: "", label: t("none") }] : []),
              ...offer.folders.map((f) => ({ value: f.id, label: f.name })),
            ]}
            value={draft.model || (isCustom(draft) ? "" : null)}
            searchable
            error={errorOf("model")}
            allowDeselect={false}
            onChange={(model) => set({ model: model ?? "" })}
          />
          <TextInput
            label={t("Path below the folder")}
            inputWrapperOrder={inLine}
            description={t("Leave empty for the folder itself.")}
            value={draft.subpath}
            error={errorOf("subpath")}
            onChange={(e) => set({ subpath: e.currentTarget.value })}
          />
        </div>
        {isCustom(draft) ? (
          <Textarea
            label={t("Command")}
            description={t(
              "A shell runs it. It must listen on the port for connections from outside, for example on 0.0.0.0.",
            )}
            required
            autosize
            minRows={2}
            maxRows={12}
            spellCheck={false}
            styles={{ input: { fontFamily: "var(--mantine-font-family-monospace)" } }}
            value={launch.command}
            error={errorOf("request.command")}
            onChange={(e) => setLaunch({ command: e.currentTarget.value })}
          />
        ) : null}
        <div className="pairs wider">
          <NumberInput
            label={t("Port")}
            placeholder={String(variant?.port ?? "")}
            min={1}
            max={65535}
            allowDecimal={false}
            value={draft.port}
            error={errorOf("port")}
            onChange={(port) => set({ port })}
          />
          <TextInput
            label={t("Path of the health check")}
            placeholder={variant?.health || t("none: the open port is enough")}
            value={draft.health}
            error={errorOf("health")}
            disabled={draft.portOnly}
            onChange={(e) => set({ health: e.currentTarget.value })}
          />
        </div>
        {variant?.health ? (
          <Checkbox
            label={t("Ready when its port is open, without a health check")}
            checked={draft.portOnly}
            onChange={(e) => set({ portOnly: e.currentTarget.checked })}
          />
        ) : null}
        {variant && !isCustom(draft) ? (
          <EngineOptions
            variant={variant}
            values={draft.options}
            wrong={Object.fromEntries(Object.entries(wrong).filter(([k]) => k.startsWith("options.")))}
            onChange={(options) => set({ options })}
          />
        ) : null}
        <h2>{t("Each replica")}</h2>
        <Presets presets={offer.presets} draft={launch} onChange={setLaunch} />
        <Amounts offer={offer} draft={launch} wrong={inLaunch} onChange={setLaunch} />
        <Folders
          all={offer.folders.filter((f) => f.id !== draft.model)}
          chosen={launch.folders}
          onChoose={(folders) => setLaunch({ folders })}
          error={errorOf("request.mounts")}
          targets={Object.fromEntries(
            (begun?.request.mounts ?? []).flatMap((m) => (m.target ? [[m.vfolder, m.target]] : [])),
          )}
        />
        <Textarea
          label={t("Environment")}
          description={t("One NAME=value in each line.")}
          autosize
          minRows={1}
          spellCheck={false}
          value={draft.environment}
          error={errorOf("request.environment")}
          onChange={(e) => set({ environment: e.currentTarget.value })}
        />
        {deployment ? (
          <TextInput
            label={t("Comment")}
            description={t("What is new in the revision?")}
            maxLength={1000}
            value={draft.comment}
            error={errorOf("comment")}
            onChange={(e) => set({ comment: e.currentTarget.value })}
          />
        ) : (
          <>
            <div className="pairs wider">
              {(
                [
                  ["min", t("Fewest replicas"), t("0 = none without requests")],
                  ["max", t("Most replicas"), t("Targets are set on the page of the deployment.")],
                ] as const
              ).map(([field, label, description]) => (
                <NumberInput
                  key={field}
                  label={label}
                  inputWrapperOrder={inLine}
                  description={description}
                  min={field === "min" ? 0 : 1}
                  max={1000}
                  allowDecimal={false}
                  value={draft[field]}
                  error={errorOf(`scaling.${field}`)}
                  onChange={(n) =>
                    set(field === "min" && Number(n) > Number(draft.max) ? { min: n, max: n } : { [field]: n })
                  }
                />
              ))}
            </div>
            <Checkbox
              label={t("Members of the project can see it and send requests")}
              checked={draft.shared}
              onChange={(e) => set({ shared: e.currentTarget.checked })}
            />
          </>
        )}
        <Places
          viewer={viewer}
          draft={launch}
          onChange={(place) => setLaunch({ ...place, preset: null })}
          wrong={inLaunch}
        />
        <FailureNote failure={rest} />
      </div>
      <div className="launch-foot row">
        <div style={{ flex: 1, minWidth: 0 }}>
          <span className="dim">{deployment ? t("A replica of it:") : t("The first replica:")}</span>
          <Preview draft={trialOf(draft)} onChange={setLaunch} />
        </div>
        <Button type="submit" size="sm" className="push" loading={create.busy || add.busy} disabled={!launch.image}>
          {deployment ? t("Start the change") : t("Deploy")}
        </Button>
      </div>
    </form>
  );
}
