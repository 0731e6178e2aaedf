import { type Viewer, administers } from "../../hooks/useViewer";

export interface AdminPage {
  to: string;
  label: string;
  /** To whom it is shown; the server says again what each may do. */
  for: (viewer: Viewer) => boolean;
}

export const isSuper = (viewer: Viewer) => viewer.user.role === "superadmin";
/** Superadmins, and monitors, who read what those read. */
export const seesAll = (viewer: Viewer) => isSuper(viewer) || viewer.user.role === "monitor";
export const seesDomain = (viewer: Viewer) => administers(viewer) || viewer.user.role === "monitor";
/** Also those who administer projects only, or hold a role somewhere. */
export const seesSome = (viewer: Viewer) => seesDomain(viewer) || viewer.user.memberships.some((m) => m.admin) || viewer.user.roleGrants.length > 0;

/** The administrators' pages, in the order of their navigation. */
export const groups: { label: string; pages: AdminPage[] }[] = [
  {
    label: "People",
    pages: [
      { to: "/admin/users", label: "Users", for: seesSome },
      { to: "/admin/projects", label: "Projects", for: seesSome },
    ],
  },
  { label: "Rules", pages: [{ to: "/admin/policies", label: "Policies", for: seesAll }] },
  {
    label: "Trail",
    pages: [
      { to: "/admin/audit", label: "Audit log", for: seesDomain },
      { to: "/admin/retention", label: "Retention", for: seesAll },
    ],
  },
  {
    label: "Machines",
    pages: [
      { to: "/admin/agents", label: "Agents", for: seesDomain },
      { to: "/admin/images", label: "Images", for: seesDomain },
    ],
  },
];
