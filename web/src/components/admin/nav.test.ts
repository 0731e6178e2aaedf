import { expect, it } from "vitest";
import type { Viewer } from "../../hooks/useViewer";
import { holdsTo, pagesOf, seesSome } from "./nav";

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

it("shows nothing to who administers nothing", () => {
  expect(seesSome(viewer({ memberships: [member(false)] }))).toBe(false);
  expect(seesSome(viewer({ roleGrants: [grant("VFOLDER", "READ", "READ_FILES")] }))).toBe(false);
});

it("shows a project admin his projects alone", () =>
  expect(pages({ memberships: [member(false), member(true)] })).toEqual(["projects"]));

it("shows who holds a role the pages that it is about", () => {
  expect(pages({ roleGrants: [grant("USER", "READ"), grant("TASK", "READ")] })).toEqual(["users", "tasks"]);
  expect(pages({ roleGrants: [grant("USER")] })).toEqual([]);
});

it("keeps domains and providers from domain admins", () => {
  const seen = pages({ role: "ADMIN" });
  expect(seen).toContain("users");
  expect(seen).toContain("invitations");
  expect(seen).not.toContain("domains");
  expect(seen).not.toContain("providers");
  expect(seen).not.toContain("retention");
});

it("shows monitors what superadmins see", () =>
  expect(pages({ role: "MONITOR" })).toEqual(pages({ role: "SUPERADMIN" })));

it("lets a monitor change nothing, whatever he holds", () => {
  const held = { roleGrants: [grant("USER", "CREATE")] };
  expect(holdsTo(viewer(held), "CREATE", "USER")).toBe(true);
  expect(holdsTo(viewer(held), "UPDATE", "USER")).toBe(false);
  expect(holdsTo(viewer({ ...held, role: "MONITOR" }), "CREATE", "USER")).toBe(false);
});
