import { expect, it } from "vitest";
import { foldersOf } from "./filter";

it.each([
  [{}, {}],
  [{ q: "im", show: "trash", mode: "data" }, { q: "im", show: "trash", mode: "data" }],
  [{ q: "", show: "everything", mode: 3 }, {}],
])("%j", (search, want) => expect(foldersOf(search)).toEqual(want));
