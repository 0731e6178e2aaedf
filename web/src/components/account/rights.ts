import type { graphql } from "../../api/graphql";
import { words } from "../../words";

type Entity = ReturnType<typeof graphql.scalar<"AccessEntity">>;
type Operation = ReturnType<typeof graphql.scalar<"AccessOperation">>;
type Role = ReturnType<typeof graphql.scalar<"UserRole">>;

/** Names of the kinds of objects, in the order in which they are shown. */
const entities: Record<Entity, string> = {
  SESSION: "Sessions",
  SESSION_TEMPLATE: "Session templates",
  DEPLOYMENT: "Deployments",
  VFOLDER: "Folders",
  USER: "Users",
  PROJECT: "Projects",
  DOMAIN: "Domains",
  CREDENTIAL: "Logins, tokens and keys of others",
  INVITATION: "Invitations",
  IDENTITY_PROVIDER: "Identity providers",
  ROLE: "Roles",
  RESOURCE_POLICY: "Policies",
  RESOURCE_GROUP: "Resource groups",
  RESOURCE_PRESET: "Presets",
  AGENT: "Agents",
  REGISTRY: "Registries",
  IMAGE: "Images",
  VOLUME: "Volumes",
  OBJECT_STORAGE: "Object storages",
  TASK: "Tasks",
  AUDIT: "Audit log",
  SYSTEM: "Platform settings",
};

const plain: Record<Operation, string> = {
  READ: "see",
  CREATE: "create",
  UPDATE: "change",
  DELETE: "delete",
  ENTER: "connect to them",
  READ_FILES: "read their files",
  WRITE_FILES: "change their files",
  IMPERSONATE: "act as them",
  MANAGE_MEMBERS: "choose their members",
  GRANT: "manage access",
  TRANSFER: "list and copy their objects",
};

/** Operations that have a special name for a kind of object. */
const own: Partial<Record<Entity, Partial<Record<Operation, string>>>> = {
  SESSION: { CREATE: "start", DELETE: "stop" },
  CREDENTIAL: { DELETE: "revoke" },
  INVITATION: { CREATE: "send", DELETE: "revoke" },
  ROLE: { GRANT: "grant" },
  TASK: { UPDATE: "cancel and retry" },
};

const order = Object.keys(plain) as Operation[];

/** The permissions of a role as phrases to translate: the objects and the operations. */
export function permissionPhrases(
  allows: readonly { entity: Entity; operations: readonly Operation[] }[],
): { on: string; editable: string[] }[] {
  const list = Object.keys(entities) as Entity[];
  return allows
    .filter((a) => a.operations.length > 0)
    .sort((a, b) => list.indexOf(a.entity) - list.indexOf(b.entity))
    .map((a) => ({
      on: entities[a.entity],
      editable: order.filter((op) => a.operations.includes(op)).map((op) => own[a.entity]?.[op] ?? plain[op]),
    }));
}

/** The purposes of the built-in roles. */
export const roleTexts: Record<Role, { name: string; what: string }> = {
  USER: {
    name: words.UserRole.USER,
    what: "You can start sessions and keep folders in your projects. You own the sessions and folders that you create; folders of a project are shared.",
  },
  ADMIN: {
    name: words.UserRole.ADMIN,
    what: "You administer the projects and users of your domain. You can see and stop their sessions, but not connect to them.",
  },
  SUPERADMIN: {
    name: words.UserRole.SUPERADMIN,
    what: "You can do everything. To connect to sessions or read folders of other users, you must act as these users, which the audit log records.",
  },
  MONITOR: { name: words.UserRole.MONITOR, what: "You can see everything, but change nothing." },
};
