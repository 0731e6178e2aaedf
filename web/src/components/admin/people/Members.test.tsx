import { screen } from "@testing-library/react";
import { expect, it, vi } from "vitest";
import { stage, viewerAs } from "../../../testing/stage";
import { Members } from "./Members";
import type { OneProject } from "./project";

const project = (permissions: OneProject["permissions"]) =>
  ({
    __typename: "Project",
    id: "p1",
    name: "vision",
    permissions,
    domain: { id: "d1", name: "default" },
    memberships: { __typename: "MembershipConnection", totalCount: 2 },
  }) as unknown as OneProject;

const member = (id: string, admin: boolean) => ({
  __typename: "MembershipEdge",
  node: {
    __typename: "Membership",
    id: `m ${id}`,
    admin,
    user: { __typename: "User", id, email: `${id}@berth.example`, fullName: id, status: "ACTIVE" },
  },
});
const node = {
  __typename: "Project",
  id: "p1",
  memberships: {
    __typename: "MembershipConnection",
    totalCount: 2,
    pageInfo: { __typename: "PageInfo", hasNextPage: false, endCursor: null },
    edges: [member("ada", true), member("bo", false)],
  },
};

it("lists members, without actions for members", async () => {
  await stage(<Members project={project(["READ"])} />, { answers: { node } });
  const emails = (await screen.findAllByText(/@berth.example/)).map((e) => e.textContent);
  expect(emails).toEqual(["ada@berth.example", "bo@berth.example"]);
  expect(screen.queryByRole("button")).toBeNull();
  expect(screen.queryByRole("checkbox")).toBeNull();
});

it("lets users who manage the members remove one after a confirmation", async () => {
  const { api, user } = await stage(<Members project={project(["READ", "MANAGE_MEMBERS"])} />, {
    viewer: viewerAs("ADMIN"),
    answers: { node, removeMembership: { project: { __typename: "Project", id: "p1" } } },
  });
  await user.click(await screen.findByRole("button", { name: "Remove bo@berth.example from vision" }));
  expect(await screen.findByText(/They lose access to the project and its folders/)).toBeDefined();
  expect(api.sent("RemoveMember")).toEqual([]);
  await user.click(screen.getByRole("button", { name: "Remove" }));
  await vi.waitFor(() => expect(api.sent("RemoveMember")).toEqual([{ input: { project: "p1", user: "bo" } }]));
});
