import { expect, it } from "vitest";
import type { Model } from "./chat";
import { draftLink, fromLink, inputOf, labelOf, winRate } from "./models";
import { wordDiff } from "./wordDiff";

const deployment = (name: string, revision: number | null = null): Model => ({
  name,
  revision,
  deployment: { id: `id-${name}`, name, status: "SERVING", recorded: false },
  endpoint: null,
});
const outside: Model = {
  name: "large",
  revision: null,
  deployment: null,
  endpoint: { id: "e1", name: "example", enabled: true },
};
const models = [deployment("llama"), deployment("qwen"), outside];

it("finds the models of a link in its order", () => {
  const { found, missing } = fromLink("qwen, llama@3,example/large,gone,llama", models);
  expect(found.map(labelOf)).toEqual(["qwen", "llama (r3)", "example/large", "llama"]);
  expect(missing).toEqual(["gone"]);
});
it("writes a link that it reads again", () => {
  const url = new URL(draftLink("https://berth.example", [deployment("llama", 3), outside], "a & b"));
  expect(url.searchParams.get("prompt")).toBe("a & b");
  expect(fromLink(url.searchParams.get("models")!, models).found.map(labelOf)).toEqual(["llama (r3)", "example/large"]);
});
it("asks the API by IDs, and not for deleted models", () => {
  expect(inputOf(deployment("llama", 2))).toEqual({ deployment: "id-llama", revision: 2 });
  expect(inputOf(outside)).toEqual({ endpoint: "e1", name: "large" });
  expect(inputOf({ ...outside, endpoint: null })).toBeNull();
});
it("counts a tie as half of a win", () => {
  expect(winRate({ wins: 2, losses: 1, ties: 2 })).toBe(0.6);
  expect(winRate({ wins: 0, losses: 0, ties: 0 })).toBeNull();
});

it("compares texts word by word", () => {
  expect(wordDiff("the red fox", "the quick red dog")).toEqual([
    { kind: "same", text: "the " },
    { kind: "added", text: "quick " },
    { kind: "same", text: "red " },
    { kind: "removed", text: "fox" },
    { kind: "added", text: "dog" },
  ]);
  expect(wordDiff("", "a")).toEqual([{ kind: "added", text: "a" }]);
  expect(wordDiff("a ".repeat(5000), "a")).toBeNull();
});
