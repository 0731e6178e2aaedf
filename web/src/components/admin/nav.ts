import type { ResultOf } from "../../api/graphql";
import { administers, type Viewer, type ViewerQuery } from "../../hooks/useViewer";

export interface AdminPage {
  to: string;
  label: string;
  /** Reports whether a viewer sees the page. The server checks permissions independently. */
  for: (viewer: Viewer) => boolean;
}

type Allowed = ResultOf<typeof ViewerQuery>["viewer"]["user"]["roleGrants"][number]["role"]["allows"][number];
type Entity = Allowed["entity"];

export const isSuper = (viewer: Viewer) => viewer.user.role === "SUPERADMIN";
/** Reports whether the viewer is a superadmin or a monitor, who can read the same. */
export const canReadAll = (viewer: Viewer) => isSuper(viewer) || viewer.user.role === "MONITOR";
export const canReadDomain = (viewer: Viewer) => administers(viewer) || viewer.user.role === "MONITOR";
/** Reports whether a custom role of the viewer covers a kind of object in any scope. */
export const hasRoleFor = (viewer: Viewer, entity: Entity) =>
  viewer.user.roleGrants.some((g) => g.role.allows.some((a) => a.entity === entity && a.operations.length > 0));
/**
 * Reports whether a custom role lets the viewer do an operation on a kind of object in any scope. Monitors cannot
 * change anything, whatever roles they have.
 */
export const hasPermission = (viewer: Viewer, op: Allowed["operations"][number], entity: Entity) =>
  viewer.user.role !== "MONITOR" &&
  viewer.user.roleGrants.some((g) => g.role.allows.some((a) => a.entity === entity && a.operations.includes(op)));
const leads = (viewer: Viewer) => viewer.user.memberships.some((m) => m.admin);

/** The admin pages, in the order of their navigation. */
export const groups: { label: string; pages: AdminPage[] }[] = [
  {
    label: "People",
    pages: [
      { to: "/admin/users", label: "Users", for: (v) => canReadDomain(v) || hasRoleFor(v, "USER") },
      {
        to: "/admin/projects",
        label: "Projects",
        for: (v) => canReadDomain(v) || leads(v) || hasRoleFor(v, "PROJECT"),
      },
      { to: "/admin/domains", label: "Domains", for: (v) => canReadAll(v) || hasRoleFor(v, "DOMAIN") },
      { to: "/admin/invitations", label: "Invitations", for: (v) => canReadDomain(v) || hasRoleFor(v, "INVITATION") },
      {
        to: "/admin/providers",
        label: "Identity providers",
        for: (v) => canReadAll(v) || hasRoleFor(v, "IDENTITY_PROVIDER"),
      },
      { to: "/admin/tasks", label: "Tasks", for: (v) => canReadDomain(v) || hasRoleFor(v, "TASK") },
    ],
  },
  {
    label: "Limits and access",
    pages: [
      { to: "/admin/policies", label: "Policies", for: (v) => canReadDomain(v) || hasRoleFor(v, "RESOURCE_POLICY") },
      {
        to: "/admin/groups",
        label: "Resource groups",
        for: (v) => canReadDomain(v) || hasRoleFor(v, "RESOURCE_GROUP"),
      },
      { to: "/admin/idle", label: "Idle checkers", for: (v) => canReadDomain(v) || hasRoleFor(v, "RESOURCE_GROUP") },
      { to: "/admin/presets", label: "Presets", for: (v) => canReadDomain(v) || hasRoleFor(v, "RESOURCE_PRESET") },
      { to: "/admin/prices", label: "Prices", for: canReadAll },
      { to: "/admin/budgets", label: "Budgets", for: (v) => canReadDomain(v) || hasRoleFor(v, "RESOURCE_POLICY") },
      { to: "/admin/volumes", label: "Volumes", for: (v) => canReadDomain(v) || hasRoleFor(v, "VOLUME") },
      { to: "/admin/roles", label: "Roles", for: (v) => canReadAll(v) || hasRoleFor(v, "ROLE") },
    ],
  },
  {
    label: "Records",
    pages: [
      { to: "/admin/audit", label: "Audit log", for: (v) => canReadDomain(v) || hasRoleFor(v, "AUDIT") },
      { to: "/admin/retention", label: "Retention", for: (v) => canReadAll(v) || hasRoleFor(v, "SYSTEM") },
    ],
  },
  {
    label: "Infrastructure",
    pages: [
      { to: "/admin/diagnostics", label: "Diagnostics", for: canReadAll },
      { to: "/admin/agents", label: "Agents", for: (v) => canReadDomain(v) || hasRoleFor(v, "AGENT") },
      { to: "/admin/announcements", label: "Announcements", for: canReadAll },
      { to: "/admin/notices", label: "Notices of the cluster", for: canReadAll },
      { to: "/admin/chat-endpoints", label: "Chat endpoints", for: canReadAll },
      { to: "/admin/images", label: "Images", for: (v) => canReadDomain(v) || hasRoleFor(v, "IMAGE") },
    ],
  },
];

/** Returns the admin pages of a viewer; none for users without administrative permissions. */
export const pagesOf = (viewer: Viewer) =>
  groups.map((g) => ({ ...g, pages: g.pages.filter((p) => p.for(viewer)) })).filter((g) => g.pages.length > 0);

/** Reports whether the viewer has any admin page. */
export const hasAdminPages = (viewer: Viewer) => pagesOf(viewer).length > 0;
