import { expect, test } from "vitest";
import { examples, needsBase, toBase64 } from "./build";

test("files of all sizes become base64", async () => {
  const bytes = new Uint8Array(100_000).map((_, i) => i % 251);
  const text = await toBase64(new Blob([bytes]));
  expect(Uint8Array.from(atob(text), (c) => c.charCodeAt(0))).toEqual(bytes);
  expect(await toBase64(new Blob([]))).toBe("");
});

test("only lists of packages need a base image", () => {
  const kinds = Object.keys(examples) as (keyof typeof examples)[];
  expect(kinds.filter(needsBase)).toEqual(["REQUIREMENTS", "ENVIRONMENT"]);
});
