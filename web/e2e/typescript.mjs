// Lets Node run TypeScript, which it does by itself from version 22.18 on: it takes the types away.
//   node --import ./e2e/typescript.mjs e2e/walk.ts
import { readFile } from "node:fs/promises";
import { register } from "node:module";
import { isMainThread } from "node:worker_threads";
import ts from "typescript";

if (isMainThread) register(import.meta.url);

const compilerOptions = {
  module: ts.ModuleKind.ESNext,
  target: ts.ScriptTarget.ES2023,
  verbatimModuleSyntax: true,
  inlineSourceMap: true,
};

/** A hook of Node's module loader. */
export async function load(url, context, next) {
  if (!url.endsWith(".ts")) return next(url, context);
  const source = await readFile(new URL(url), "utf8");
  const { outputText } = ts.transpileModule(source, { compilerOptions, fileName: url });
  return { format: "module", source: outputText, shortCircuit: true };
}
