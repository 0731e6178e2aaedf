import type { graphql } from "../../../api/graphql";
import type { Viewer } from "../../../hooks/useViewer";
import { words } from "../../../words";
import { isSuper } from "../nav";
import type { Role } from "./userdraft";

type Operation = ReturnType<typeof graphql.scalar<"AccessOperation">>;

export const may = (object: { permissions: readonly Operation[] } | null | undefined, op: Operation) =>
  object?.permissions.includes(op) ?? false;

export const adminOf = (viewer: Viewer, domain: string) =>
  isSuper(viewer) || (viewer.user.role === "ADMIN" && viewer.user.domain.id === domain);

/** The roles that a viewer may give to others: no higher than his own. */
export const roles = (viewer: Viewer): Role[] =>
  isSuper(viewer)
    ? ["USER", "ADMIN", "SUPERADMIN", "MONITOR"]
    : viewer.user.role === "ADMIN"
      ? ["USER", "ADMIN"]
      : ["USER"];

export const roleNames = words.UserRole;

/** Whether the viewer may change somebody with a role: those above him he may not. */
export const reaches = (viewer: Viewer, role: Role) => roles(viewer).includes(role);
