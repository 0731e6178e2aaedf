import type { graphql } from "../../../api/graphql";
import type { Viewer } from "../../../hooks/useViewer";
import { words } from "../../../words";
import { isSuper } from "../nav";
import type { Role } from "./userdraft";

type Operation = ReturnType<typeof graphql.scalar<"AccessOperation">>;

export const can = (object: { permissions: readonly Operation[] } | null | undefined, op: Operation) =>
  object?.permissions.includes(op) ?? false;

export const adminOf = (viewer: Viewer, domain: string) =>
  isSuper(viewer) || (viewer.user.role === "ADMIN" && viewer.user.domain.id === domain);

/** Returns the roles that a viewer can grant: none above their own. */
export const grantableRoles = (viewer: Viewer): Role[] =>
  isSuper(viewer)
    ? ["USER", "ADMIN", "SUPERADMIN", "MONITOR"]
    : viewer.user.role === "ADMIN"
      ? ["USER", "ADMIN"]
      : ["USER"];

export const roleNames = words.UserRole;

/** Reports whether the viewer can change a user with this role: the role must not be above their own. */
export const canChangeUser = (viewer: Viewer, role: Role) => grantableRoles(viewer).includes(role);
