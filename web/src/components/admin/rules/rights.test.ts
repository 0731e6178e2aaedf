import { expect, it } from "vitest";
import type { Viewer } from "../../../hooks/useViewer";
import { binds, mayCreate } from "./rights";

type User = Viewer["user"];
const viewer = (role: User["role"], ...roleGrants: unknown[]) => ({ user: { role, roleGrants } }) as unknown as Viewer;
const grant = (scope: string, entity: string, ...operations: string[]) => ({
  id: "g",
  scope,
  role: { id: "r", allows: [{ entity, operations }] },
});

it("lets superadmins make everything, others what a role on the system says", () => {
  expect(mayCreate(viewer("SUPERADMIN"), "ROLE")).toBe(true);
  expect(mayCreate(viewer("USER", grant("system", "role", "read", "create")), "ROLE")).toBe(true);
  expect(mayCreate(viewer("USER", grant("system", "role", "read", "create")), "RESOURCE_GROUP")).toBe(false);
  expect(mayCreate(viewer("USER", grant("domain", "role", "create")), "ROLE")).toBe(false);
  expect(mayCreate(viewer("USER", grant("system", "role", "update")), "ROLE")).toBe(false);
});

it("lets a monitor make nothing, whatever he was granted", () => {
  expect(mayCreate(viewer("MONITOR", grant("system", "role", "create")), "ROLE")).toBe(false);
  expect(binds(viewer("MONITOR", grant("system", "resource_policy", "update")))).toEqual([]);
});

it("says whom one may bind", () => {
  expect(binds(viewer("SUPERADMIN"))).toContain("domain");
  expect(binds(viewer("ADMIN"))).toEqual(["project", "user", "keypair"]);
  expect(binds(viewer("ADMIN", grant("domain", "resource_policy", "update")))).toContain("domain");
  expect(binds(viewer("USER", grant("project", "resource_policy", "update")))).toEqual(["project"]);
  expect(binds(viewer("USER"))).toEqual([]);
});
