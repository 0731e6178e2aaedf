import type { graphql } from "../../api/graphql";

type Entity = ReturnType<typeof graphql.scalar<"AccessEntity">>;
type Operation = ReturnType<typeof graphql.scalar<"AccessOperation">>;
type Role = ReturnType<typeof graphql.scalar<"UserRole">>;

/** Kinds of objects as people call them, in the order in which they are shown. */
const entities: Record<Entity, string> = {
  session: "Sessions",
  vfolder: "Folders",
  user: "Users",
  project: "Projects",
  domain: "Domains",
  credential: "Logins, tokens and keys of others",
  invitation: "Invitations",
  identity_provider: "Identity providers",
  role: "Roles",
  resource_policy: "Policies",
  resource_group: "Resource groups",
  resource_preset: "Presets",
  agent: "Machines",
  registry: "Registries",
  image: "Images",
  volume: "Volumes",
  object_storage: "Object storages",
  task: "Long-running tasks",
  audit: "Audit log",
  system: "Settings of the platform",
};

const plain: Record<Operation, string> = { read: "see", create: "create", update: "change", delete: "delete", special: "use", write: "write" };

/** Where an operation has a name of its own. */
const own: Partial<Record<Entity, Partial<Record<Operation, string>>>> = {
  session: { create: "start", delete: "end", special: "enter" },
  vfolder: { special: "read their files", write: "change their files" },
  user: { special: "act as them" },
  project: { special: "choose their members" },
  credential: { delete: "revoke" },
  invitation: { create: "send", delete: "revoke" },
  role: { special: "grant" },
  resource_group: { special: "say who uses them" },
  volume: { special: "say who uses them" },
  task: { update: "cancel and retry" },
};

const order: Operation[] = ["read", "create", "update", "delete", "special", "write"];

/** What a role allows, as phrases to translate: on what, and what to do with it. */
export function inWords(allows: readonly { entity: Entity; operations: readonly Operation[] }[]): { on: string; may: string[] }[] {
  const list = Object.keys(entities) as Entity[];
  return allows
    .filter((a) => a.operations.length > 0)
    .sort((a, b) => list.indexOf(a.entity) - list.indexOf(b.entity))
    .map((a) => ({ on: entities[a.entity], may: order.filter((op) => a.operations.includes(op)).map((op) => own[a.entity]?.[op] ?? plain[op]) }));
}

/** What the built-in roles are for. */
export const roleWords: Record<Role, { name: string; what: string }> = {
  user: { name: "User", what: "You start sessions and keep folders in your projects; what you make is yours, a project's folders are shared." },
  admin: { name: "Admin of the domain", what: "You administer the projects and users of your domain, and see and end their sessions; you enter nobody's." },
  superadmin: { name: "Superadmin", what: "You do everything, but enter the sessions and folders of others only as they themselves, which the audit log shows." },
  monitor: { name: "Monitor", what: "You see everything and change nothing." },
};
