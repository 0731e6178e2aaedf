import { expect, test } from "vitest";
import { type BuildKind, examples, gitInput, needsBase, noRepository, takesBase, toBase64 } from "./build";

test("files of all sizes become base64", async () => {
  const bytes = new Uint8Array(100_000).map((_, i) => i % 251);
  const text = await toBase64(new Blob([bytes]));
  expect(Uint8Array.from(atob(text), (c) => c.charCodeAt(0))).toEqual(bytes);
  expect(await toBase64(new Blob([]))).toBe("");
});

test("only lists of packages need a base image", () => {
  const kinds = Object.keys(examples("python:1")) as BuildKind[];
  expect(kinds.filter(needsBase)).toEqual(["REQUIREMENTS", "ENVIRONMENT"]);
  expect(kinds.filter(takesBase)).toEqual(["REQUIREMENTS", "ENVIRONMENT", "GIT"]);
});

test("the token of a repository is a secret, and not a part of the address", () => {
  expect(gitInput({ ...noRepository, address: " https://example.org/a.git " })).toEqual({
    git: { address: "https://example.org/a.git" },
  });
  expect(gitInput({ address: "https://example.org/a", ref: "main", directory: "docker", token: "x" })).toEqual({
    git: { address: "https://example.org/a", ref: "main", directory: "docker", secret: "git-token" },
    secrets: { "git-token": "x" },
  });
});
