import type { ResultOf } from "../../api/graphql";
import { administers, type Viewer, type ViewerQuery } from "../../hooks/useViewer";

export interface AdminPage {
  to: string;
  label: string;
  /** To whom it is shown; the server says again what each may do. */
  for: (viewer: Viewer) => boolean;
}

type Allowed = ResultOf<typeof ViewerQuery>["viewer"]["user"]["roleGrants"][number]["role"]["allows"][number];
type Entity = Allowed["entity"];

export const isSuper = (viewer: Viewer) => viewer.user.role === "superadmin";
/** Superadmins, and monitors, who read what those read. */
export const seesAll = (viewer: Viewer) => isSuper(viewer) || viewer.user.role === "monitor";
export const seesDomain = (viewer: Viewer) => administers(viewer) || viewer.user.role === "monitor";
/** Whether a custom role of the viewer is about a kind of object, somewhere. */
export const holds = (viewer: Viewer, entity: Entity) =>
  viewer.user.roleGrants.some((g) => g.role.allows.some((a) => a.entity === entity && a.operations.length > 0));
/** Whether one allows him something there; monitors change nothing, whatever they hold. */
export const holdsTo = (viewer: Viewer, op: Allowed["operations"][number], entity: Entity) =>
  viewer.user.role !== "monitor" &&
  viewer.user.roleGrants.some((g) => g.role.allows.some((a) => a.entity === entity && a.operations.includes(op)));
const leads = (viewer: Viewer) => viewer.user.memberships.some((m) => m.admin);

/** The administrators' pages, in the order of their navigation. */
export const groups: { label: string; pages: AdminPage[] }[] = [
  {
    label: "People",
    pages: [
      { to: "/admin/users", label: "Users", for: (v) => seesDomain(v) || holds(v, "user") },
      { to: "/admin/projects", label: "Projects", for: (v) => seesDomain(v) || leads(v) || holds(v, "project") },
      { to: "/admin/domains", label: "Domains", for: (v) => seesAll(v) || holds(v, "domain") },
      { to: "/admin/invitations", label: "Invitations", for: (v) => seesDomain(v) || holds(v, "invitation") },
      { to: "/admin/providers", label: "Identity providers", for: (v) => seesAll(v) || holds(v, "identity_provider") },
      { to: "/admin/tasks", label: "Tasks", for: (v) => seesDomain(v) || holds(v, "task") },
    ],
  },
  {
    label: "Limits and access",
    pages: [
      { to: "/admin/policies", label: "Policies", for: (v) => seesDomain(v) || holds(v, "resource_policy") },
      { to: "/admin/groups", label: "Resource groups", for: (v) => seesDomain(v) || holds(v, "resource_group") },
      { to: "/admin/idle", label: "Idle checkers", for: (v) => seesDomain(v) || holds(v, "resource_group") },
      { to: "/admin/presets", label: "Presets", for: (v) => seesDomain(v) || holds(v, "resource_preset") },
      { to: "/admin/volumes", label: "Volumes", for: (v) => seesDomain(v) || holds(v, "volume") },
      { to: "/admin/roles", label: "Roles", for: (v) => seesAll(v) || holds(v, "role") },
    ],
  },
  {
    label: "Records",
    pages: [
      { to: "/admin/audit", label: "Audit log", for: (v) => seesDomain(v) || holds(v, "audit") },
      { to: "/admin/retention", label: "Retention", for: (v) => seesAll(v) || holds(v, "system") },
    ],
  },
  {
    label: "Infrastructure",
    pages: [
      { to: "/admin/agents", label: "Agents", for: (v) => seesDomain(v) || holds(v, "agent") },
      { to: "/admin/images", label: "Images", for: (v) => seesDomain(v) || holds(v, "image") },
    ],
  },
];

/** The pages of a viewer; none for who administers nothing. */
export const pagesOf = (viewer: Viewer) =>
  groups.map((g) => ({ ...g, pages: g.pages.filter((p) => p.for(viewer)) })).filter((g) => g.pages.length > 0);

/** Whether there are administrators' pages for the viewer at all. */
export const seesSome = (viewer: Viewer) => pagesOf(viewer).length > 0;
