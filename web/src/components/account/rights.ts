import type { graphql } from "../../api/graphql";
import { words } from "../../words";

type Entity = ReturnType<typeof graphql.scalar<"AccessEntity">>;
type Operation = ReturnType<typeof graphql.scalar<"AccessOperation">>;
type Role = ReturnType<typeof graphql.scalar<"UserRole">>;

/** Kinds of objects as people call them, in the order in which they are shown. */
const entities: Record<Entity, string> = {
  session: "Sessions",
  session_template: "Session templates",
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
  agent: "Agents",
  registry: "Registries",
  image: "Images",
  volume: "Volumes",
  object_storage: "Object storages",
  task: "Tasks",
  audit: "Audit log",
  system: "Platform settings",
};

const plain: Record<Operation, string> = {
  read: "see",
  create: "create",
  update: "change",
  delete: "delete",
  enter: "connect to them",
  read_files: "read their files",
  write_files: "change their files",
  impersonate: "act as them",
  manage_members: "choose their members",
  grant: "manage access",
  transfer: "list and copy their objects",
};

/** Where an operation has a name of its own. */
const own: Partial<Record<Entity, Partial<Record<Operation, string>>>> = {
  session: { create: "start", delete: "stop" },
  credential: { delete: "revoke" },
  invitation: { create: "send", delete: "revoke" },
  role: { grant: "grant" },
  task: { update: "cancel and retry" },
};

const order = Object.keys(plain) as Operation[];

/** What a role allows, as phrases to translate: on what, and what to do with it. */
export function inWords(
  allows: readonly { entity: Entity; operations: readonly Operation[] }[],
): { on: string; may: string[] }[] {
  const list = Object.keys(entities) as Entity[];
  return allows
    .filter((a) => a.operations.length > 0)
    .sort((a, b) => list.indexOf(a.entity) - list.indexOf(b.entity))
    .map((a) => ({
      on: entities[a.entity],
      may: order.filter((op) => a.operations.includes(op)).map((op) => own[a.entity]?.[op] ?? plain[op]),
    }));
}

/** What the built-in roles are for. */
export const roleWords: Record<Role, { name: string; what: string }> = {
  user: {
    name: words.UserRole.user,
    what: "You can start sessions and keep folders in your projects. You own the sessions and folders that you create; folders of a project are shared.",
  },
  admin: {
    name: words.UserRole.admin,
    what: "You administer the projects and users of your domain. You can see and stop their sessions, but not connect to them.",
  },
  superadmin: {
    name: words.UserRole.superadmin,
    what: "You can do everything. To connect to sessions or read folders of other users, you must act as these users, which the audit log records.",
  },
  monitor: { name: words.UserRole.monitor, what: "You can see everything, but change nothing." },
};
