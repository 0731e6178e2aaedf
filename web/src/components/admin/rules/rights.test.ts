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
  expect(mayCreate(viewer("superadmin"), "role")).toBe(true);
  expect(mayCreate(viewer("user", grant("system", "role", "read", "create")), "role")).toBe(true);
  expect(mayCreate(viewer("user", grant("system", "role", "read", "create")), "resource_group")).toBe(false);
  expect(mayCreate(viewer("user", grant("domain", "role", "create")), "role")).toBe(false);
  expect(mayCreate(viewer("user", grant("system", "role", "update")), "role")).toBe(false);
});

it("lets a monitor make nothing, whatever he was granted", () => {
  expect(mayCreate(viewer("monitor", grant("system", "role", "create")), "role")).toBe(false);
  expect(binds(viewer("monitor", grant("system", "resource_policy", "update")))).toEqual([]);
});

it("says whom one may bind", () => {
  expect(binds(viewer("superadmin"))).toContain("domain");
  expect(binds(viewer("admin"))).toEqual(["project", "user", "keypair"]);
  expect(binds(viewer("admin", grant("domain", "resource_policy", "update")))).toContain("domain");
  expect(binds(viewer("user", grant("project", "resource_policy", "update")))).toEqual(["project"]);
  expect(binds(viewer("user"))).toEqual([]);
});
