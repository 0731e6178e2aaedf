import { expect, it } from "vitest";
import { foldersOf, whereOf } from "./filter";

const one = "01a202c3-ebb1-7598-8369-d08853670f26";

it("takes what it knows from the address, and nothing else", () => {
  expect(foldersOf({ q: "digits", show: "mine", mode: "data", owner: one, project: one, page: 3 })).toEqual({
    q: "digits",
    show: "mine",
    mode: "data",
    owner: one,
    project: one,
  });
  expect(foldersOf({ q: "", show: "all", mode: ["data"], owner: "alice", project: 7 })).toEqual({
    q: undefined,
    show: undefined,
    mode: undefined,
    owner: undefined,
    project: undefined,
  });
});

it.each([
  ["all that can be used", {}, { statusIn: ["ready", "cloning"] }],
  [
    "one's own of a name",
    { q: "dig", show: "mine" as const },
    { statusIn: ["ready", "cloning"], nameContainsFold: "dig", kind: "mine" },
  ],
  [
    "the trash, of whatever kind",
    { show: "trash" as const, mode: "data" as const },
    { statusIn: ["trash", "deleting"], usageMode: "data" },
  ],
  [
    "those of one user",
    { show: "others" as const, owner: one },
    { statusIn: ["ready", "cloning"], kind: "others", ownerID: one },
  ],
  ["those of one project", { project: one }, { statusIn: ["ready", "cloning"], projectID: one }],
  [
    "one's own, whatever an old address says of owner and project",
    { show: "mine" as const, owner: one, project: one },
    { statusIn: ["ready", "cloning"], kind: "mine" },
  ],
])("asks for %s", (_, filter, where) => expect(whereOf(filter)).toEqual(where));
