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

/** The kinds of objects that roles speak about, in the order in which they are shown. */
export const entities = [
  "domain",
  "project",
  "user",
  "credential",
  "invitation",
  "identity_provider",
  "role",
  "resource_policy",
  "resource_group",
  "resource_preset",
  "agent",
  "registry",
  "image",
  "volume",
  "session",
  "vfolder",
  "task",
  "audit",
  "system",
] as const satisfies readonly Entity[];

export const operations = [
  "read",
  "create",
  "update",
  "delete",
  "special",
  "write",
] as const satisfies readonly Operation[];

/** What special is, where it is something. */
export const special: Partial<Record<Entity, string>> = {
  project: "manage members",
  user: "act as the user",
  role: "grant the role",
  resource_group: "manage access",
  volume: "manage access",
  session: "connect to it",
  vfolder: "read the files",
};

/** Kinds whose objects can be named one by one. */
export const single = new Set<Entity>([
  "domain",
  "project",
  "user",
  "role",
  "resource_policy",
  "resource_group",
  "resource_preset",
  "agent",
  "registry",
  "image",
  "volume",
  "session",
  "vfolder",
  "task",
]);

/** A role as it is ticked: what is allowed per kind. */
export type Ticks = Readonly<Partial<Record<Entity, ReadonlySet<Operation>>>>;

export const ticksOf = (allows: Allows): Ticks =>
  Object.fromEntries(allows.map((a) => [a.entity, new Set(a.operations)]));

/** Whether a box stands for something: special means nothing for most kinds, and files are written in folders. */
export const meant = (entity: Entity, op: Operation) =>
  op === "special" ? entity in special : op !== "write" || entity === "vfolder";

export function tick(ticks: Ticks, entity: Entity, ops: readonly Operation[], on: boolean): Ticks {
  const next = new Set(ticks[entity]);
  for (const op of ops) {
    if (!on) next.delete(op);
    else if (meant(entity, op)) next.add(op);
  }
  return { ...ticks, [entity]: next };
}

/** What is sent: kinds and operations in their order, without those that allow nothing. */
export const allowsOf = (ticks: Ticks): Allows =>
  entities.flatMap((entity) => {
    const list = operations.filter((op) => ticks[entity]?.has(op));
    return list.length > 0 ? [{ entity, operations: list }] : [];
  });

/** Whether all, some or none of what a row or column stands for is ticked. */
export function state(ticks: Ticks, of: readonly Entity[], ops: readonly Operation[]): "all" | "some" | "none" {
  let on = 0;
  let all = 0;
  for (const entity of of)
    for (const op of ops) {
      if (!meant(entity, op)) continue;
      all++;
      if (ticks[entity]?.has(op)) on++;
    }
  return on === 0 ? "none" : on === all ? "all" : "some";
}

/** What one kind allows, short: everything, or its operations. */
export const brief = (entity: Entity, ops: readonly Operation[]): readonly (Operation | "everything")[] =>
  operations.every((op) => !meant(entity, op) || ops.includes(op))
    ? ["everything"]
    : operations.filter((op) => ops.includes(op));
