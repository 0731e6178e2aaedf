import { expect, it } from "vitest";
import { peopleOf, whereOf } from "./filter";

it("reads the address, and nothing that is not meant", () => {
  expect(peopleOf({ q: "ada", role: "ADMIN", status: "GONE", view: "import", open: "", other: 1 })).toEqual({
    q: "ada",
    role: "ADMIN",
    view: "import",
  });
});

it("leaves out who was deleted unless he is asked for", () => {
  expect(whereOf({}, null)).toEqual({ statusIn: ["ACTIVE", "INACTIVE", "BEFORE_VERIFICATION"] });
  expect(whereOf({ status: "DELETED" }, null)).toEqual({ status: "DELETED" });
});

it("finds nobody in a project without members, or before they are known", () => {
  expect(whereOf({ project: "p" }, null).idIn).toEqual(["p"]);
  expect(whereOf({ project: "p" }, []).idIn).toEqual(["p"]);
  expect(whereOf({ project: "p" }, ["a", "b"]).idIn).toEqual(["a", "b"]);
});

it("looks for an address or a name", () => {
  expect(whereOf({ q: "kim", role: "USER" }, null)).toMatchObject({
    or: [{ emailContainsFold: "kim" }, { fullNameContainsFold: "kim" }],
    role: "USER",
  });
});
