import { expect, it } from "vitest";
import { longestBlock, split } from "./blocks";

const texts = (text: string) => split(text).map((b) => b.text);

it("splits at empty lines and at code", () => {
  expect(split("a\n\nb\n```go\nx\n\ny\n```\nc")).toEqual([
    { kind: "markdown", text: "a\n", math: false },
    { kind: "markdown", text: "b", math: false },
    { kind: "code", language: "go", text: "x\n\ny", closed: true },
    { kind: "markdown", text: "c", math: false },
  ]);
});

it("keeps a list with empty lines, indented lines and formulas in one block", () => {
  expect(texts("1. a\n\n   b\n\n2. c\n\nd")).toEqual(["1. a\n\n   b\n\n2. c\n", "d"]);
  expect(texts("$$\na\n\nb\n$$")).toEqual(["$$\na\n\nb\n$$"]);
});

it("changes only the last block while a text grows", () => {
  const whole = "one\n\ntwo\n\n```js\nlet a\n```\nthree\n\n- x\n- y\n\nend";
  for (let n = 1; n < whole.length; n++) {
    const before = split(whole.slice(0, n));
    const after = split(whole.slice(0, n + 1));
    const kept = Math.max(0, before.length - 2);
    expect(after.slice(0, kept)).toEqual(before.slice(0, kept));
  }
});

it("shows an open block of code", () =>
  expect(split("```py\nprint(1)")).toEqual([{ kind: "code", language: "py", text: "print(1)", closed: false }]));

it("needs the same fence to close a block of code", () =>
  expect(split("````\n```\na\n```\n````")).toEqual([
    { kind: "code", language: "", text: "```\na\n```", closed: true },
  ]));

it("tells prices from formulas", () => {
  expect(split("It costs $5 and $10.")).toEqual([{ kind: "markdown", text: "It costs \\$5 and \\$10.", math: true }]);
  expect(texts("$a+b$ is \\(c\\)")).toEqual(["$a+b$ is $c$"]);
  expect(texts("`$5 and $6` stays")).toEqual(["`$5 and $6` stays"]);
});

it.each([
  ["quotes", ">".repeat(5000)],
  ["spaced quotes", "> ".repeat(5000)],
  ["lists", `${"- ".repeat(5000)}a`],
  ["indented lists", Array.from({ length: 500 }, (_, i) => `${" ".repeat(i * 2)}- a`).join("\n")],
  ["brackets", "[".repeat(10_000)],
  ["images", "![".repeat(10_000)],
  ["emphasis", `${"*".repeat(4000)}a`],
  ["a long line", "a".repeat(longestBlock + 1)],
])("does not read %s without end as Markdown", (_, text) => expect(split(text).map((b) => b.kind)).toEqual(["plain"]));

it("reads rulers and usual lists as Markdown", () => {
  for (const text of ["-".repeat(80), "* * * * * * * * *", "=".repeat(60), "- a\n  - b\n    - c", "**bold** [a](b)"]) {
    expect(split(text).map((b) => b.kind)).toEqual(["markdown"]);
  }
});

it("splits a long answer quickly enough to do so many times", () => {
  const text = "A line with `code`, $x$ and **more**.\n\n".repeat(2500);
  const start = performance.now();
  expect(split(text)).toHaveLength(2500);
  // Far above what it takes: a quadratic split would take minutes.
  expect(performance.now() - start).toBeLessThan(20_000);
});
