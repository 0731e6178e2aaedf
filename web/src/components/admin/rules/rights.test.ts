import { expect, it } from "vitest";
import type { Viewer } from "../../../hooks/useViewer";
import { attachableHolders, canCreate } from "./rights";

type User = Viewer["user"];
const viewer = (role: User["role"], ...roleGrants: unknown[]) => ({ user: { role, roleGrants } }) as unknown as Viewer;
const grant = (scope: string, entity: string, ...operations: string[]) => ({
  id: "g",
  scope,
  role: { id: "r", allows: [{ entity, operations }] },
});

it("lets superadmins create everything, and other users only what their system-wide roles allow", () => {
  expect(canCreate(viewer("SUPERADMIN"), "ROLE")).toBe(true);
  expect(canCreate(viewer("USER", grant("SYSTEM", "ROLE", "READ", "CREATE")), "ROLE")).toBe(true);
  expect(canCreate(viewer("USER", grant("SYSTEM", "ROLE", "READ", "CREATE")), "RESOURCE_GROUP")).toBe(false);
  expect(canCreate(viewer("USER", grant("DOMAIN", "ROLE", "CREATE")), "ROLE")).toBe(false);
  expect(canCreate(viewer("USER", grant("SYSTEM", "ROLE", "UPDATE")), "ROLE")).toBe(false);
});

it("lets monitors create nothing, whatever roles they have", () => {
  expect(canCreate(viewer("MONITOR", grant("SYSTEM", "ROLE", "CREATE")), "ROLE")).toBe(false);
  expect(attachableHolders(viewer("MONITOR", grant("SYSTEM", "RESOURCE_POLICY", "UPDATE")))).toEqual([]);
});

it("returns the holders to which the viewer can attach policies", () => {
  expect(attachableHolders(viewer("SUPERADMIN"))).toContain("domain");
  expect(attachableHolders(viewer("ADMIN"))).toEqual(["project", "user", "keypair"]);
  expect(attachableHolders(viewer("ADMIN", grant("DOMAIN", "RESOURCE_POLICY", "UPDATE")))).toContain("domain");
  expect(attachableHolders(viewer("USER", grant("PROJECT", "RESOURCE_POLICY", "UPDATE")))).toEqual(["project"]);
  expect(attachableHolders(viewer("USER"))).toEqual([]);
});
