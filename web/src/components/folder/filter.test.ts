import { expect, it } from "vitest";
import { foldersOf, whereOf } from "./filter";

const one = "01a202c3-ebb1-7598-8369-d08853670f26";

it("reads the filter from the URL, and ignores invalid values", () => {
  expect(foldersOf({ q: "digits", show: "mine", mode: "DATA", owner: one, project: one, page: 3 })).toEqual({
    q: "digits",
    show: "mine",
    mode: "DATA",
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
  ["all that can be used", {}, { statusIn: ["READY", "CLONING"] }],
  [
    "one's own of a name",
    { q: "dig", show: "mine" as const },
    { statusIn: ["READY", "CLONING"], nameContainsFold: "dig", kind: "MINE" },
  ],
  [
    "the trash, of whatever kind",
    { show: "trash" as const, mode: "DATA" as const },
    { statusIn: ["TRASH", "DELETING"], usageMode: "DATA" },
  ],
  [
    "those of one user",
    { show: "others" as const, owner: one },
    { statusIn: ["READY", "CLONING"], kind: "OTHERS", ownerID: one },
  ],
  ["those of one project", { project: one }, { statusIn: ["READY", "CLONING"], projectID: one }],
  [
    "one's own, whatever an old address says of owner and project",
    { show: "mine" as const, owner: one, project: one },
    { statusIn: ["READY", "CLONING"], kind: "MINE" },
  ],
])("asks for %s", (_, filter, where) => expect(whereOf(filter)).toEqual(where));
