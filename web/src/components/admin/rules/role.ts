import { graphql, type ResultOf } from "../../../api/graphql";

export const RoleFields = graphql(`
  fragment RoleFields on Role {
    id name description permissions allows { entity operations }
    grants { id scope scopeId createdAt user { id email } }
  }
`);
export type Role = ResultOf<typeof RoleFields>;
export type Allows = Role["allows"];
export type Entity = Allows[number]["entity"];
export type Operation = Allows[number]["operations"][number];
export type Scope = Role["grants"][number]["scope"];

/** The kinds of objects that roles cover, in the order in which they are shown. */
export const entities = [
  "DOMAIN",
  "PROJECT",
  "USER",
  "CREDENTIAL",
  "INVITATION",
  "IDENTITY_PROVIDER",
  "ROLE",
  "RESOURCE_POLICY",
  "RESOURCE_GROUP",
  "RESOURCE_PRESET",
  "AGENT",
  "REGISTRY",
  "IMAGE",
  "VOLUME",
  "OBJECT_STORAGE",
  "SESSION",
  "VFOLDER",
  "TASK",
  "AUDIT",
  "SYSTEM",
] as const satisfies readonly Entity[];

/** The operations that every kind of object has. */
export const general = ["READ", "CREATE", "UPDATE", "DELETE"] as const satisfies readonly Operation[];

/** The operations that only some kinds of objects have. */
export const own: Partial<Record<Entity, readonly Operation[]>> = {
  PROJECT: ["MANAGE_MEMBERS"],
  USER: ["IMPERSONATE"],
  ROLE: ["GRANT"],
  RESOURCE_GROUP: ["GRANT"],
  VOLUME: ["GRANT"],
  OBJECT_STORAGE: ["TRANSFER"],
  SESSION: ["ENTER"],
  VFOLDER: ["READ_FILES", "WRITE_FILES"],
};

/** The operations of a kind of object, in the order in which they are shown. */
export const operationsOf = (entity: Entity): readonly Operation[] => [...general, ...(own[entity] ?? [])];

/** Kinds for which a role can be granted on a single object. */
export const single = new Set<Entity>([
  "DOMAIN",
  "PROJECT",
  "USER",
  "ROLE",
  "RESOURCE_POLICY",
  "RESOURCE_GROUP",
  "RESOURCE_PRESET",
  "AGENT",
  "REGISTRY",
  "IMAGE",
  "VOLUME",
  "SESSION",
  "VFOLDER",
  "TASK",
]);

/** The form state of a role: the allowed operations per kind. */
export type Ticks = Readonly<Partial<Record<Entity, ReadonlySet<Operation>>>>;

export const ticksOf = (allows: Allows): Ticks =>
  Object.fromEntries(allows.map((a) => [a.entity, new Set(a.operations)]));

export function tick(ticks: Ticks, entity: Entity, ops: readonly Operation[], on: boolean): Ticks {
  const next = new Set(ticks[entity]);
  for (const op of ops) {
    if (on) next.add(op);
    else next.delete(op);
  }
  return { ...ticks, [entity]: next };
}

/** Returns the input for the server: kinds and operations in their order, without kinds that allow nothing. */
export const allowsOf = (ticks: Ticks): Allows =>
  entities.flatMap((entity) => {
    const list = operationsOf(entity).filter((op) => ticks[entity]?.has(op));
    return list.length > 0 ? [{ entity, operations: list }] : [];
  });

/** Returns whether all, some or none of the operations on some kinds of objects are selected. */
export function state(
  ticks: Ticks,
  of: readonly Entity[],
  ops: (entity: Entity) => readonly Operation[],
): "all" | "some" | "none" {
  const on = of.flatMap((entity) => ops(entity).map((op) => ticks[entity]?.has(op) ?? false));
  return on.every(Boolean) ? "all" : on.some(Boolean) ? "some" : "none";
}

/** Returns the permissions for one kind in short: everything, or the operations. */
export const brief = (entity: Entity, ops: readonly Operation[]): readonly (Operation | "everything")[] =>
  operationsOf(entity).every((op) => ops.includes(op))
    ? ["everything"]
    : operationsOf(entity).filter((op) => ops.includes(op));
