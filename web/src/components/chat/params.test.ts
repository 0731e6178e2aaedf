import { expect, it } from "vitest";
import { countSet, draftOf, noParameters, parametersInput, parametersOf, problemsOf } from "./params";

const draft = draftOf(noParameters);

it("leaves out what is not set", () => {
  expect(parametersInput(parametersOf(draft))).toEqual({});
  expect(countSet(noParameters)).toBe(0);
});
it("keeps zero, which differs from the default", () =>
  expect(parametersInput(parametersOf({ ...draft, temperature: "0", seed: "-1" }))).toEqual({
    temperature: 0,
    seed: -1,
  }));
it("reads a line as a text that ends an answer", () => {
  const p = parametersOf({ ...draft, stop: "END\n\\n\\n\n" });
  expect(p.stop).toEqual(["END", "\n\n"]);
  expect(draftOf(p).stop).toBe("END\n\\n\\n");
});
it.each([
  ["temperature", "2.1"],
  ["temperature", "warm"],
  ["topP", "0"],
  ["maxTokens", "1.5"],
  ["maxTokens", "0"],
  ["presencePenalty", "-3"],
  ["seed", "1e99"],
  ["stop", "1\n2\n3\n4\n5"],
  ["stop", "x".repeat(101)],
  ["schema", "{"],
  ["schema", "[]"],
  ["system", "é".repeat(17_000)],
] as const)("refuses %s %s", (field, value) => expect(problemsOf({ ...draft, [field]: value })).toHaveProperty(field));
it("accepts the limits", () =>
  expect(
    problemsOf({ ...draft, temperature: "2", topP: "1", maxTokens: "1000000", schema: '{"type":"object"}' }),
  ).toEqual({}));
