import { expect, it } from "vitest";
import { changed, changesOf, draftOf, type Known } from "./userdraft";

const ada: Known = {
  id: "u1",
  username: "ada",
  fullName: "Ada Kim",
  role: "USER",
  account: {
    allowedAddresses: ["10.0.0.0/8"],
    containerUid: 1000,
    containerGid: 1000,
    containerGids: [20, 30],
    passwordChangeRequired: false,
  },
};

it("sends nothing without a change", () => {
  const { input, wrong } = changesOf(ada, draftOf(ada));
  expect(wrong).toEqual({});
  expect(changed(input)).toBe(false);
});

it("sends only changed fields", () => {
  const draft = {
    ...draftOf(ada),
    fullName: " Ada K. ",
    role: "ADMIN" as const,
    allowedAddresses: "10.0.0.0/8\n192.168.1.5",
    containerGids: "",
  };
  expect(changesOf(ada, draft).input).toEqual({
    id: "u1",
    fullName: "Ada K.",
    role: "ADMIN",
    allowedAddresses: ["10.0.0.0/8", "192.168.1.5"],
    containerGids: [],
  });
});

it("clears the container's user and group IDs only together", () => {
  const none = { ...draftOf(ada), containerUid: "", containerGid: "", containerGids: "" };
  expect(changesOf(ada, none).input).toEqual({ id: "u1", clearContainer: true });
  const { input, wrong } = changesOf(ada, { ...none, containerGid: "1000" });
  expect(input).toBeNull();
  expect(Object.keys(wrong)).toEqual(["containerUid"]);
});

it("returns an error for each invalid number", () => {
  const { input, wrong } = changesOf(ada, { ...draftOf(ada), containerUid: "root", containerGids: "20 -3" });
  expect(input).toBeNull();
  expect(Object.keys(wrong)).toEqual(["containerUid", "containerGids"]);
});
