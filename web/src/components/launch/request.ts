import type { LaunchBase, LaunchOptions, SavedRequest } from "../../hooks/useLaunch";
import { parseSize, parseTime } from "../admin/rules/amounts";
import { quote, trim } from "../format";

export interface Size {
  key: "S" | "M" | "L";
  cpu: number;
  /** GiB */
  mem: number;
}

export const sizes: Size[] = [
  { key: "S", cpu: 1, mem: 1 },
  { key: "M", cpu: 2, mem: 4 },
  { key: "L", cpu: 4, mem: 8 },
];

/** A named request that an administrator made. */
export interface Preset {
  id: string;
  slots: Record<string, string>;
  shmBytes: number;
}

export interface LaunchDraft {
  image: string;
  mode: "INTERACTIVE" | "BATCH";
  command: string;
  name: string;
  cpu: number;
  mem: number;
  slot: string;
  share: number;
  /** The preset whose exact amounts are requested; null after an amount was changed by hand. */
  preset: Preset | null;
  /** A size such as 40g; empty for the default. */
  disk: string;
  folders: { id: string; readOnly: boolean }[];
  project: string | null;
  group: string | null;
  /** The local time from the input field. */
  startsAt: string;
  dependsOn: string[];
  /** A time such as 2h; empty for no limit. */
  lifetime: string;
  priority: number | string;
  preemptible: boolean;
  agents: string[];
  /** Whether only these agents can run the session. Otherwise they are preferred. */
  strict: boolean;
  sessionGroup: string | null;
  tags: string[];
  /** The indexes of an array, such as 1-100%8; empty for a single session. */
  array: string;
  /** The template or session that provides the values that the form does not change. */
  base: LaunchBase | null;
  /** Name of the app to open when the session runs; empty for none. */
  open: string;
}

/** The defaults for scheduling and placement. */
export const defaults: Pick<
  LaunchDraft,
  | "startsAt"
  | "dependsOn"
  | "lifetime"
  | "priority"
  | "preemptible"
  | "agents"
  | "strict"
  | "sessionGroup"
  | "tags"
  | "array"
  | "base"
> = {
  startsAt: "",
  dependsOn: [],
  lifetime: "",
  priority: 10,
  preemptible: false,
  agents: [],
  strict: false,
  sessionGroup: null,
  tags: [],
  array: "",
  base: null,
};

export const gib = 1024 ** 3;

/** The default disk limit of a container if no policy sets one. */
const defaultDisk = 20 * gib;

/** Returns the default and the maximum of a container's disk, and the policy that sets the maximum. */
export function diskLimits(limits: readonly { what: string; limit: string; policy: string; holder: string }[]) {
  const limit = limits.find((l) => l.what === "disk bytes");
  const maxSize = limit ? Number(limit.limit) : defaultDisk;
  return {
    defaultSize: Math.min(defaultDisk, maxSize),
    maxSize,
    policy: limit?.policy ?? "",
    holder: limit?.holder ?? "",
  };
}

export function slotsOf(
  draft: Pick<LaunchDraft, "cpu" | "mem" | "slot" | "share"> & { preset?: Preset | null },
): Record<string, string> {
  if (draft.preset) return draft.preset.slots;
  return {
    cpu: String(draft.cpu),
    mem: String(Math.round(draft.mem * gib)),
    ...(draft.slot && draft.share > 0 ? { [draft.slot]: trim(draft.share.toFixed(3)) } : {}),
  };
}

/** Converts slots of an earlier session to form values. Without slots, returns the smallest size. */
export function amountsOf(slots?: Record<string, string>): Pick<LaunchDraft, "cpu" | "mem" | "slot" | "share"> {
  if (!slots) return { cpu: sizes[0]!.cpu, mem: sizes[0]!.mem, slot: "", share: 0 };
  const [slot = "", share = "0"] =
    Object.entries(slots).find(([s, n]) => s !== "cpu" && !s.endsWith("mem") && Number(n) > 0) ?? [];
  return { cpu: Number(slots.cpu ?? 0), mem: Number(slots.mem ?? 0) / gib, slot, share: Number(share) };
}

/** Selects a preset. Its amounts are also shown in the fields, so that the user can start from them. */
export const withPreset = (preset: Preset): Pick<LaunchDraft, "preset" | "cpu" | "mem" | "slot" | "share"> => {
  const { cpu, mem, slot, share } = amountsOf(preset.slots);
  // The defaults of the server for amounts that the preset does not set.
  return { preset, cpu: cpu || 1, mem: mem || 1, slot, share };
};

/** Sets amounts by hand, which deselects the preset. */
export const withAmounts = (
  more: Partial<Pick<LaunchDraft, "cpu" | "mem" | "slot" | "share">>,
): Partial<LaunchDraft> => ({
  ...more,
  preset: null,
});

/** Returns the command line that was given to a shell, or the quoted words of any other command. */
export function lineOf(command: readonly string[]): string {
  if (command.length === 3 && command[1] === "-c" && /(^|\/)sh$/.test(command[0]!)) return command[2]!;
  return command.map(quote).join(" ");
}

/** Returns the initial form: empty, or filled in from a session or a template. */
export function initialDraft(begin: LaunchOptions, project: string | null, group: string | null): LaunchDraft {
  const r = begin.base?.request;
  const command = r ? (r.type === "INTERACTIVE" ? "" : lineOf(r.command ?? [])) : (begin.command ?? "");
  return {
    ...defaults,
    image: r?.image ?? begin.image ?? "",
    mode: command ? "BATCH" : "INTERACTIVE",
    command,
    name: "",
    ...amountsOf(r?.slots ?? begin.slots),
    preset: null,
    disk: r?.diskBytes ? `${r.diskBytes / gib} GiB` : "",
    folders: r ? foldersOf(r) : begin.folder ? [{ id: begin.folder, readOnly: begin.readOnly ?? false }] : [],
    project: r?.project ?? project,
    group: r?.resourceGroup ?? group,
    ...(r
      ? {
          lifetime: r.lifetime ? `${r.lifetime / 60}min` : "",
          priority: r.priority ?? defaults.priority,
          preemptible: r.preemptible ?? false,
          agents: r.agents ?? [],
          strict: r.strictAgents ?? false,
          sessionGroup: r.sessionGroup,
          tags: r.tags ?? [],
        }
      : {}),
    open: "",
    base: begin.base ?? null,
  };
}

const foldersOf = (r: SavedRequest) => (r.mounts ?? []).map((m) => ({ id: m.vfolder, readOnly: m.readOnly ?? false }));

const same = (a: unknown, b: unknown) => JSON.stringify(a) === JSON.stringify(b);

/** Returns the differences between the form and the template or session that it started from. */
function changes(draft: LaunchDraft, base: LaunchBase) {
  const r = base.request;
  const initial = amountsOf(r.slots);
  const slots = slotsOf(draft);
  // 0 removes an accelerator. Slots that the form cannot show stay as they are.
  if (initial.slot && !(initial.slot in slots)) slots[initial.slot] = "0";
  const folders = draft.folders.map((f) => ({ vfolder: f.id, readOnly: f.readOnly }));
  return {
    ...(base.kind === "session" ? { from: base.id } : { template: base.id }),
    slots,
    ...(same(draft.folders, foldersOf(r)) ? {} : { mounts: folders }),
    ...(same(draft.tags, r.tags ?? []) ? {} : { tags: draft.tags }),
    ...(draft.mode === "BATCH" && draft.command === lineOf(r.command ?? []) ? { command: undefined } : {}),
    priority: Number(draft.priority),
  };
}

/** Returns the complete request of a new template: that of the template or session, with the changes in the form. */
export function savedOf(draft: LaunchDraft) {
  const { idempotencyKey: _, ...form } = inputOf({ ...draft, base: null }, "");
  if (!draft.base) return form;
  const saved = Object.fromEntries(Object.entries(draft.base.request).filter(([, value]) => value !== null));
  const { from: _from, template: _template, ...more } = { from: "", template: "", ...changes(draft, draft.base) };
  const changed = Object.fromEntries(Object.entries({ ...form, ...more }).filter(([, value]) => value !== undefined));
  const slots = { ...draft.base.request.slots, ...more.slots };
  for (const slot of Object.keys(slots)) if (slots[slot] === "0") delete slots[slot];
  const {
    name: _name,
    startsAt: _startsAt,
    dependsOn: _dependsOn,
    ...rest
  } = { name: "", startsAt: "", dependsOn: [], ...saved };
  if (!("command" in changed) || changed.command === form.command) {
    if (draft.command === lineOf(draft.base.request.command ?? [])) delete changed.command;
  }
  if (same(draft.folders, foldersOf(draft.base.request))) delete changed.mounts;
  return { ...rest, ...changed, image: draft.image, slots };
}

/** Returns the input of createSession. The idempotency key keeps a double click from creating two sessions. */
export function inputOf(draft: LaunchDraft, idempotencyKey: string) {
  return {
    image: draft.image,
    type: draft.mode,
    slots: slotsOf(draft),
    idempotencyKey,
    ...(draft.preset && draft.preset.shmBytes > 0 ? { shmBytes: draft.preset.shmBytes } : {}),
    ...(draft.disk.trim() ? { diskBytes: parseSize(draft.disk) } : {}),
    ...(draft.name.trim() ? { name: draft.name.trim() } : {}),
    ...(draft.mode === "BATCH" ? { command: ["/bin/sh", "-c", draft.command] } : {}),
    ...(draft.folders.length > 0
      ? { mounts: draft.folders.map((f) => ({ vfolder: f.id, readOnly: f.readOnly })) }
      : {}),
    ...(draft.project ? { project: draft.project } : {}),
    ...(draft.group ? { resourceGroup: draft.group } : {}),
    ...(draft.mode === "BATCH" && draft.startsAt ? { startsAt: new Date(draft.startsAt).toISOString() } : {}),
    ...(draft.dependsOn.length > 0 ? { dependsOn: draft.dependsOn } : {}),
    ...(draft.lifetime.trim() ? { lifetime: parseTime(draft.lifetime) } : {}),
    ...(Number(draft.priority) === defaults.priority ? {} : { priority: Number(draft.priority) }),
    ...(draft.preemptible ? { preemptible: true } : {}),
    ...(draft.agents.length > 0 ? { agents: draft.agents, strictAgents: draft.strict } : {}),
    ...(draft.sessionGroup ? { sessionGroup: draft.sessionGroup } : {}),
    ...(draft.tags.length > 0 ? { tags: draft.tags } : {}),
    ...(draft.base ? changes(draft, draft.base) : {}),
  };
}

/**
 * Returns the input of a dry run for a size. It leaves out fields that do not matter for the result, so that an
 * incomplete form gets one, too.
 */
export function sizeInput(draft: LaunchDraft, size: Size) {
  const { idempotencyKey: _, ...input } = inputOf(
    {
      ...draft,
      ...defaults,
      agents: draft.agents,
      strict: draft.strict,
      cpu: size.cpu,
      mem: size.mem,
      preset: null,
      command: "true",
      name: "",
      folders: [],
      disk: "",
    },
    "",
  );
  return input;
}

/** Converts the result of a dry run to that of a preset. */
export function presetFit(trial: {
  verdict: "NOW" | "WAITS" | "NEVER" | "REFUSED";
  refusals: readonly { message: string }[];
}) {
  const states = { NOW: "NOW", WAITS: "WHEN_FREE", NEVER: "NEVER", REFUSED: "REFUSED" } as const;
  return { state: states[trial.verdict], reason: trial.refusals.map((r) => r.message).join(" ") };
}

/** Returns the errors that can be found without the server, by field. */
export function check(draft: LaunchDraft): Record<string, string> {
  const wrong: Record<string, string> = {};
  if (!draft.image) wrong.image = "Choose an image.";
  if (draft.mode === "BATCH" && !draft.command.trim()) wrong.command = "A batch session needs a command.";
  const name = draft.name.trim();
  if (name && name.length > 64) wrong.name = "Use at most 64 characters.";
  if (!(draft.cpu > 0)) wrong["slots.cpu"] = "Enter a number above 0.";
  if (!(draft.mem > 0)) wrong["slots.mem"] = "Enter a number above 0.";
  if (draft.mode === "BATCH" && draft.startsAt && Number.isNaN(Date.parse(draft.startsAt)))
    wrong.startsAt = "Enter a date and a time.";
  if (draft.lifetime.trim() && parseTime(draft.lifetime) === null)
    wrong.lifetime = "Enter a time such as 30min, 12h or 2d, or leave empty.";
  if (draft.disk.trim() && parseSize(draft.disk) === null)
    wrong.diskBytes = "Enter a size such as 40 GiB, or leave empty.";
  if (draft.mode === "BATCH" && draft.array.trim() && !/^[0-9,:% -]+$/.test(draft.array))
    wrong.indexes = "Enter indexes such as 1-100, 1-10:2 or 1,3,7.";
  const priority = Number(draft.priority);
  if (draft.priority === "" || !Number.isInteger(priority) || priority < 0 || priority > 100)
    wrong.priority = "Enter a number from 0 to 100.";
  return wrong;
}

/**
 * Returns the slots of accelerators in the cluster, shares first. Device memory is left out because it is not
 * requested separately.
 */
export function acceleratorSlots(
  agents: readonly { devices: readonly { capacity: Record<string, string> }[] }[],
): string[] {
  const all = new Set(agents.flatMap((a) => a.devices.flatMap((d) => Object.keys(d.capacity))));
  return [...all]
    .filter((s) => s !== "cpu" && s !== "mem" && !s.endsWith(".mem"))
    .sort((a, b) => Number(b.endsWith(".shares")) - Number(a.endsWith(".shares")) || a.localeCompare(b));
}

/**
 * Returns the amounts offered as buttons: the only possible ones, or quarters of a device for shares and then powers
 * of two.
 */
export function amountChoices(slot: string, most: number, counts: readonly number[] = []): number[] {
  if (counts.length > 0) return [0, ...counts.filter((n) => n <= most)];
  const fractions = slot.endsWith(".shares") ? [0, 0.25, 0.5, 0.75] : [0];
  const whole = [1, 2, 4, 8, 16].filter((n) => n <= most + 1e-9);
  return [...fractions.filter((f) => f <= most), ...whole];
}

/** Sorts images: recently launched ones first, the latest at the top. */
export function byRecent<T extends { reference: string; name: string }>(
  images: readonly T[],
  recent: readonly string[],
): T[] {
  const place = (i: T) => {
    const at = recent.indexOf(i.reference);
    return at < 0 ? recent.length : at;
  };
  return [...images].sort((a, b) => place(a) - place(b) || a.name.localeCompare(b.name));
}
