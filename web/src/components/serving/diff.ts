import { slotsLine } from "../format";
import { lineOf } from "../launch/request";
import type { Revision } from "./serving";

/** A field of a revision with its text. */
interface Field {
  name: string;
  text: string;
}

/** The names of the fields are keys of translations, or names that the user or an engine gave. */
export interface Difference {
  name: string;
  /** Empty if the field is only in the newer revision. */
  before: string;
  after: string;
}

const skipped = ["image", "type", "slots", "command", "environment", "mounts", "project", "apps", "autoMount"];

const names: Record<string, string> = {
  bootstrapScript: "Script before the command",
  kernels: "Containers",
  resourceGroup: "Resource group",
  priority: "Priority",
  agents: "Machines",
  strictAgents: "Only these machines",
  preemptible: "Preemptible",
  shmBytes: "Bytes of /dev/shm",
  diskBytes: "Bytes of disk",
  tags: "Tags",
};

/** Returns all fields of a revision that have a value. Values of secrets are compared, but the page hides them. */
function fieldsOf(r: Revision): Field[] {
  const q = r.request as unknown as Record<string, unknown>;
  const fields: Field[] = [
    { name: "Image", text: r.image },
    { name: "Variant", text: r.variant },
    ...Object.entries(r.options).map(([k, v]) => ({ name: `option ${k}`, text: v })),
    { name: "Model folder", text: r.vfolder?.name ?? "" },
    { name: "Path of the model", text: r.subpath },
    { name: "Command", text: lineOf(r.request.command ?? []) },
    { name: "Resources", text: slotsLine(r.request.slots) },
    ...Object.entries(r.request.environment).map(([k, v]) => ({ name: `env ${k}`, text: v })),
    ...(r.request.mounts ?? []).map((m) => ({
      name: `mount ${m.target ?? m.vfolder}`,
      text: `${m.vfolder}${m.subpath ? `/${m.subpath}` : ""}${m.readOnly ? " (ro)" : ""}`,
    })),
    { name: "Port", text: String(r.engine.port) },
    {
      name: "Health check",
      text: `${r.engine.health || "port"} ${r.engine.health ? r.engine.healthStatus : ""}`.trim(),
    },
    { name: "Check interval, s", text: String(r.engine.interval) },
    { name: "Check timeout, s", text: String(r.engine.timeout) },
    { name: "Failed checks", text: String(r.engine.retries) },
    { name: "Start timeout, s", text: String(r.engine.startTimeout) },
    { name: "Metrics", text: r.engine.metrics },
    ...Object.entries(q).flatMap(([k, v]) =>
      skipped.includes(k) || v === null || v === undefined || v === false || (Array.isArray(v) && v.length === 0)
        ? []
        : [{ name: names[k] ?? k, text: typeof v === "string" ? v : JSON.stringify(v) }],
    ),
    { name: "Comment", text: r.comment },
  ];
  return fields.filter((f) => f.text !== "");
}

/** Returns what differs between two revisions, field by field. */
export function differences(before: Revision, after: Revision): Difference[] {
  const old = new Map(fieldsOf(before).map((f) => [f.name, f.text]));
  const now = new Map(fieldsOf(after).map((f) => [f.name, f.text]));
  return [...new Set([...now.keys(), ...old.keys()])]
    .map((name) => ({ name, before: old.get(name) ?? "", after: now.get(name) ?? "" }))
    .filter((d) => d.before !== d.after);
}
