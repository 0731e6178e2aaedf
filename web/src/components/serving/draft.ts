import type { Failure } from "../../api/errors";
import { initialDraft, inputOf, type LaunchDraft, lineOf } from "../launch/request";
import type { Revision, Variant } from "./serving";

/** The mount of the folder of a model, which the server adds. */
const modelPath = "/models";

/** A deployment or a revision as it is typed. The session of a replica is a draft of the launch form. */
export interface DeployDraft {
  launch: LaunchDraft;
  name: string;
  description: string;
  variant: string;
  /** Options of the engine, as text. */
  options: Record<string, string>;
  /** ID of the folder of the model; empty for none. */
  model: string;
  subpath: string;
  /** Lines NAME=value. */
  environment: string;
  /** Empty for that of the variant. */
  port: number | string;
  health: string;
  /** The engine is ready when its port is open, although its variant has a path for the health check. */
  portOnly: boolean;
  shared: boolean;
  min: number | string;
  max: number | string;
  comment: string;
}

export const newDraft = (project: string | null, group: string | null): DeployDraft => ({
  launch: { ...initialDraft({}, project, group), mode: "BATCH" },
  name: "",
  description: "",
  variant: "vllm",
  options: {},
  model: "",
  subpath: "",
  environment: "",
  port: "",
  health: "",
  portOnly: false,
  shared: false,
  min: 1,
  max: 1,
  comment: "",
});

/** Returns the form for a revision that begins as another one. */
export function draftOf(r: Revision, variants: readonly Variant[]): DeployDraft {
  const q = r.request;
  const usual = variants.find((v) => v.name === r.variant);
  const mounts = (q.mounts ?? []).filter((m) => !isModel(r, m));
  const launch = initialDraft(
    { base: { kind: "template", id: "", name: "", request: { ...q, type: "BATCH", mounts, lifetime: null } } },
    null,
    null,
  );
  return {
    ...newDraft(null, null),
    launch: { ...launch, mode: "BATCH", command: r.variant === "custom" ? launch.command : "", base: null },
    variant: r.variant,
    options: { ...r.options },
    model: hasModel(r) ? (r.vfolder?.id ?? "") : "",
    subpath: hasModel(r) ? r.subpath : "",
    environment: Object.entries(q.environment)
      .map(([k, v]) => `${k}=${v}`)
      .join("\n"),
    port: usual && !isCustom(r) && r.engine.port === usual.port ? "" : r.engine.port,
    health: usual && !isCustom(r) && r.engine.health === usual.health ? "" : r.engine.health,
    portOnly: Boolean(usual?.health) && r.engine.health === "",
  };
}

type Mount = NonNullable<Revision["request"]["mounts"]>[number];
const isModel = (r: Revision, m: Mount) => m.vfolder === r.vfolder?.id && m.target === modelPath;
const hasModel = (r: Revision) => (r.request.mounts ?? []).some((m) => isModel(r, m));

/** Returns the launch form with which the first replica is tried: an engine's own command does not matter for that. */
export const trialOf = (d: DeployDraft): LaunchDraft => ({
  ...d.launch,
  name: "",
  command: isCustom(d) ? d.launch.command : "engine",
});

export const isCustom = (d: Pick<DeployDraft, "variant">) => d.variant === "custom";

/** Reads lines NAME=value; null if a line has another form. */
export function parseEnvironment(text: string): Record<string, string> | null {
  const all: Record<string, string> = {};
  for (const line of text.split("\n")) {
    if (!line.trim()) continue;
    const at = line.indexOf("=");
    if (at < 1) return null;
    all[line.slice(0, at).trim()] = line.slice(at + 1);
  }
  return all;
}

/** Returns the errors that can be found without the server, by field of the API. */
export function checkDraft(d: DeployDraft, isNew: boolean): Record<string, string> {
  const wrong: Record<string, string> = {};
  if (isNew && !/^[a-z0-9][a-z0-9._-]{0,62}$/.test(d.name.trim()))
    wrong.name = "Use 1 to 63 lower-case letters, digits and . _ - that begin with a letter or digit.";
  if (!d.launch.image) wrong["request.image"] = "Choose an image.";
  if (isCustom(d) && !d.launch.command.trim()) wrong["request.command"] = "Enter the command that starts the engine.";
  if (!isCustom(d) && !d.model) wrong.model = "Choose the folder with the model.";
  if (!(d.launch.cpu > 0)) wrong["request.slots.cpu"] = "Enter a number above 0.";
  if (!(d.launch.mem > 0)) wrong["request.slots.mem"] = "Enter a number above 0.";
  if (d.subpath && !d.model) wrong.subpath = "Choose the folder with the model.";
  if (parseEnvironment(d.environment) === null) wrong["request.environment"] = "Write one NAME=value in each line.";
  if (isNew && Number(d.max) < Math.max(1, Number(d.min)))
    wrong["scaling.max"] = "The maximum must be at least 1, and not below the minimum.";
  return wrong;
}

/** Returns the input of a revision. What the form does not show comes from the revision that it began as. */
export function revisionInput(d: DeployDraft, begun?: Revision) {
  const {
    idempotencyKey: _key,
    type: _type,
    project: _project,
    name: _name,
    command,
    mounts,
    startsAt: _startsAt,
    dependsOn: _dependsOn,
    lifetime: _lifetime,
    sessionGroup: _group,
    ...form
  } = {
    name: "",
    project: "",
    startsAt: "",
    dependsOn: [],
    lifetime: 0,
    sessionGroup: "",
    command: [] as string[],
    mounts: [] as { vfolder: string; readOnly: boolean }[],
    ...inputOf(trialOf(d), ""),
  };
  const environment = parseEnvironment(d.environment) ?? {};
  const options = Object.fromEntries(Object.entries(d.options).filter(([, v]) => v !== ""));
  const kept = begun ? keptOf(begun) : {};
  const before = begun?.request.mounts ?? [];
  return {
    variant: d.variant,
    ...(isCustom(d) || Object.keys(options).length === 0 ? {} : { options }),
    ...(d.model ? { model: d.model } : {}),
    ...(d.subpath.trim() ? { subpath: d.subpath.trim() } : {}),
    ...(d.port === "" ? {} : { port: Number(d.port) }),
    ...(d.portOnly ? { health: "" } : d.health.trim() ? { health: d.health.trim() } : {}),
    ...(d.comment.trim() ? { comment: d.comment.trim() } : {}),
    ...(begun ? checksOf(begun) : {}),
    request: {
      ...kept,
      ...form,
      ...(isCustom(d) ? { command: sameCommand(d, begun) ?? command } : {}),
      ...(Object.keys(environment).length > 0 ? { environment } : {}),
      ...(mounts.length > 0 ? { mounts: mounts.map((m) => ({ ...pathOf(before, m.vfolder), ...m })) } : {}),
    },
  };
}

/** The words of the command that a revision had, if the form still shows it: the form would run it with a shell. */
function sameCommand(d: DeployDraft, begun?: Revision): string[] | undefined {
  const words = begun?.variant === "custom" ? (begun.request.command ?? []) : [];
  return words.length > 0 && d.launch.command === lineOf(words) ? words : undefined;
}

/** A request can name its folders. Returns the revision with their IDs, as far as the folders are offered. */
export function withFolderIds(r: Revision, folders: readonly { id: string; name: string }[]): Revision {
  const idOf = (ref: string) => folders.find((f) => f.id === ref || f.name === ref)?.id ?? ref;
  const mounts = r.request.mounts?.map((m) => ({ ...m, vfolder: idOf(m.vfolder) })) ?? null;
  return { ...r, request: { ...r.request, mounts } };
}

/** The path of a folder that the revision mounted already. */
function pathOf(before: readonly Mount[], vfolder: string) {
  const m = before.find((one) => one.vfolder === vfolder && one.target !== modelPath);
  return { ...(m?.target ? { target: m.target } : {}), ...(m?.subpath ? { subpath: m.subpath } : {}) };
}

const keptFields = ["kernels", "bootstrapScript", "autoMount", "shmBytes"] as const;

const keptOf = (r: Revision) =>
  Object.fromEntries(keptFields.flatMap((k) => (r.request[k] === null ? [] : [[k, r.request[k]]])));

const checksOf = ({ engine: e }: Revision) => ({
  healthStatus: e.healthStatus,
  interval: e.interval,
  timeout: e.timeout,
  retries: e.retries,
  startTimeout: e.startTimeout,
});

/** Returns the input of createDeployment. */
export const deploymentInput = (d: DeployDraft) => ({
  name: d.name.trim(),
  ...(d.description.trim() ? { description: d.description.trim() } : {}),
  ...(d.launch.project ? { project: d.launch.project } : {}),
  shared: d.shared,
  revision: revisionInput(d),
  scaling: { min: Number(d.min), max: Number(d.max) },
});

/** Moves an error of a revision to the field of the form. */
export const atField = (failure: Failure | null): Failure | null =>
  failure?.field ? { ...failure, field: failure.field.replace(/^revision\./, "") } : failure;
