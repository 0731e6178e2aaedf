import { expect, it } from "vitest";
import { rank } from "./rank";

const labels = (typed: string) =>
  rank([{ label: "Sessions" }, { label: "train-session" }, { label: "obsess" }, { label: "Data" }], typed).map(
    (e) => e.label,
  );

it("prefers beginnings, then words, then parts", () => {
  expect(labels("sess")).toEqual(["Sessions", "train-session", "obsess"]);
});
it("accepts letters in order", () => expect(labels("dta")).toEqual(["Data"]));
it("shows all for nothing, none for nonsense", () => {
  expect(labels(" ")).toHaveLength(4);
  expect(labels("zz")).toEqual([]);
});
