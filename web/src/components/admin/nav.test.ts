import { expect, it } from "vitest";
import type { Viewer } from "../../hooks/useViewer";
import { hasAdminPages, hasPermission, pagesOf } from "./nav";

type Changes = Partial<Pick<Viewer["user"], "role" | "memberships" | "roleGrants">>;
const viewer = (more: Changes) =>
  ({ user: { role: "USER", memberships: [], roleGrants: [], ...more } }) as unknown as Viewer;
const member = (admin: boolean) => ({ id: "m", admin, project: { id: "p" } });
const grant = (entity: string, ...operations: string[]) =>
  ({
    id: "g",
    scope: "DOMAIN",
    role: { id: "r", allows: [{ entity, operations }] },
  }) as unknown as Viewer["user"]["roleGrants"][number];
const pages = (more: Changes) => pagesOf(viewer(more)).flatMap((g) => g.pages.map((p) => p.to.slice("/admin/".length)));

it("shows no page to users without administrative permissions", () => {
  expect(hasAdminPages(viewer({ memberships: [member(false)] }))).toBe(false);
  expect(hasAdminPages(viewer({ roleGrants: [grant("VFOLDER", "READ", "READ_FILES")] }))).toBe(false);
});

it("shows only the projects to a project administrator", () =>
  expect(pages({ memberships: [member(false), member(true)] })).toEqual(["projects"]));

it("shows the pages of the kinds of objects in a custom role", () => {
  expect(pages({ roleGrants: [grant("USER", "READ"), grant("TASK", "READ")] })).toEqual(["users", "tasks"]);
  expect(pages({ roleGrants: [grant("USER")] })).toEqual([]);
});

it("hides domains and providers from domain admins", () => {
  const seen = pages({ role: "ADMIN" });
  expect(seen).toContain("users");
  expect(seen).toContain("invitations");
  expect(seen).not.toContain("domains");
  expect(seen).not.toContain("providers");
  expect(seen).not.toContain("retention");
});

it("shows the same pages to monitors as to superadmins", () =>
  expect(pages({ role: "MONITOR" })).toEqual(pages({ role: "SUPERADMIN" })));

it("gives a monitor no permission to change anything, whatever custom roles they have", () => {
  const held = { roleGrants: [grant("USER", "CREATE")] };
  expect(hasPermission(viewer(held), "CREATE", "USER")).toBe(true);
  expect(hasPermission(viewer(held), "UPDATE", "USER")).toBe(false);
  expect(hasPermission(viewer({ ...held, role: "MONITOR" }), "CREATE", "USER")).toBe(false);
});
