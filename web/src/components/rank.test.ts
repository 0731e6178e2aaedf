import { expect, it } from "vitest";
import { rank } from "./rank";

const labels = (typed: string) =>
  rank([{ label: "Sessions" }, { label: "train-session" }, { label: "obsess" }, { label: "Data" }], typed).map(
    (e) => e.label,
  );

it("ranks the beginning of a label first, then words, then other parts", () => {
  expect(labels("sess")).toEqual(["Sessions", "train-session", "obsess"]);
});
it("matches letters in order", () => expect(labels("dta")).toEqual(["Data"]));
it("returns all entries for an empty search, and none without a match", () => {
  expect(labels(" ")).toHaveLength(4);
  expect(labels("zz")).toEqual([]);
});
