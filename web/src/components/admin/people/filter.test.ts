import { expect, it } from "vitest";
import { peopleOf, whereOf } from "./filter";

it("reads the filter from the URL, and ignores invalid values", () => {
  expect(peopleOf({ q: "ada", role: "ADMIN", status: "GONE", view: "import", open: "", other: 1 })).toEqual({
    q: "ada",
    role: "ADMIN",
    view: "import",
  });
});

it("leaves out deleted users unless the filter includes them", () => {
  expect(whereOf({})).toEqual({ statusIn: ["ACTIVE", "INACTIVE", "BEFORE_VERIFICATION"] });
  expect(whereOf({ status: "DELETED" })).toEqual({ status: "DELETED" });
});

it("lists the members of a project", () => expect(whereOf({ project: "p" })).toMatchObject({ memberOf: "p" }));

it("searches by e-mail address or name", () => {
  expect(whereOf({ q: "kim", role: "USER" })).toMatchObject({
    or: [{ emailContainsFold: "kim" }, { fullNameContainsFold: "kim" }],
    role: "USER",
  });
});
