import type { Viewer } from "../../../hooks/useViewer";
import { isSuper } from "../nav";
import type { HolderKind } from "./holder";

type Grant = Viewer["user"]["roleGrants"][number];
type Allowed = Grant["role"]["allows"][number];

const hasPermission = (
  viewer: Viewer,
  entity: Allowed["entity"],
  op: Allowed["operations"][number],
  scopes?: Grant["scope"][],
) =>
  viewer.user.role !== "MONITOR" &&
  viewer.user.roleGrants.some(
    (g) =>
      (!scopes || scopes.includes(g.scope)) &&
      g.role.allows.some((a) => a.entity === entity && a.operations.includes(op)),
  );

/**
 * Reports whether the viewer can create objects of a kind that belongs to no domain. Existing objects carry the
 * viewer's permissions.
 */
export const canCreate = (viewer: Viewer, entity: Allowed["entity"]) =>
  isSuper(viewer) || hasPermission(viewer, entity, "CREATE", ["SYSTEM"]);

/**
 * Returns the kinds of holders to which the viewer can attach policies. Domain admins cannot change the limits of
 * their own domain.
 */
export function attachableHolders(viewer: Viewer): HolderKind[] {
  if (isSuper(viewer)) return ["domain", "project", "user", "keypair"];
  if (hasPermission(viewer, "RESOURCE_POLICY", "UPDATE", ["SYSTEM", "DOMAIN"]))
    return ["domain", "project", "user", "keypair"];
  if (viewer.user.role === "ADMIN") return ["project", "user", "keypair"];
  return hasPermission(viewer, "RESOURCE_POLICY", "UPDATE", ["PROJECT"]) ? ["project"] : [];
}
