/** A part of a Markdown text that is rendered on its own, so that the earlier parts of a growing text stay as they are. */
export type Block =
  | { kind: "markdown"; text: string; math: boolean }
  | { kind: "code"; language: string; text: string; closed: boolean }
  /** Text that is shown as it is, because rendering it would take too long. */
  | { kind: "plain"; text: string };

/** The most characters of a block that are read as Markdown. */
export const longestBlock = 20_000;
/** The most levels of quotes, lists and brackets in a block that is read as Markdown. */
const deepest = 40;

const fence = /^ {0,3}(`{3,}|~{3,})\s*([^`\s]*)[^`]*$/;
const listItem = /^ {0,3}([-*+]|\d{1,9}[.)])(\s|$)/;

/** Collects lines until a block is complete. */
class Splitter {
  readonly blocks: Block[] = [];
  private lines: string[] = [];
  private inMath = false;

  flush() {
    const text = this.lines.join("\n");
    this.lines = [];
    this.inMath = false;
    if (text.trim() !== "") this.blocks.push(markdown(text));
  }

  add(line: string, next: string | undefined) {
    const marks = line.match(/\$\$/g)?.length ?? 0;
    if (marks % 2 === 1) this.inMath = !this.inMath;
    this.lines.push(line);
    if (line.trim() === "" && !this.inMath && this.ends(next)) this.flush();
  }

  /** Reports whether the line after an empty one begins a block. A list continues with indented lines and other items. */
  private ends(next: string | undefined): boolean {
    if (next === undefined || next.trim() === "") return false;
    const first = this.lines.find((l) => l.trim() !== "") ?? "";
    if (listItem.test(first)) return !/^\s/.test(next) && !listItem.test(next);
    return !/^(\t| {4})/.test(next);
  }
}

/** Splits a Markdown text at empty lines and at blocks of code. */
export function split(text: string): Block[] {
  const splitter = new Splitter();
  const lines = text.split("\n");
  for (let i = 0; i < lines.length; i++) {
    const open = fence.exec(lines[i]!);
    if (!open) {
      splitter.add(lines[i]!, lines[i + 1]);
      continue;
    }
    splitter.flush();
    const mark = open[1]!;
    const close = new RegExp(`^ {0,3}\\${mark[0]}{${mark.length},}\\s*$`);
    let end = i + 1;
    while (end < lines.length && !close.test(lines[end]!)) end++;
    const code = lines.slice(i + 1, end).join("\n");
    splitter.blocks.push({ kind: "code", language: open[2] ?? "", text: code, closed: end < lines.length });
    i = end;
  }
  splitter.flush();
  return splitter.blocks;
}

function markdown(text: string): Block {
  if (text.length > longestBlock || depth(text) > deepest) return { kind: "plain", text };
  const prepared = dollars(brackets(text));
  return { kind: "markdown", text: prepared, math: prepared.includes("$") };
}

/** Returns how deep quotes, lists, brackets and emphasis in a text can nest at most. */
function depth(text: string): number {
  let most = 0;
  for (const line of text.split("\n")) {
    const marks = /^[\s>*+\-\d.)]*/.exec(line)?.[0] ?? "";
    const quotes = marks.replace(/[^>*+\-.)]/g, "").length;
    // A ruler such as ------ is one mark.
    if (!/^\s*([-*_=+]\s*)\1*$/.test(line)) most = Math.max(most, quotes, Math.floor((marks.length - quotes) / 4));
  }
  let open = 0;
  for (const c of text) {
    if (c === "[" || c === "(") most = Math.max(most, ++open);
    else if ((c === "]" || c === ")") && open > 0) open--;
  }
  return Math.max(most, ...(text.match(/[*_~]{9,}/g) ?? []).filter((m) => !isRuler(text, m)).map((m) => m.length));
}

const isRuler = (text: string, run: string) => text.split("\n").some((line) => line.trim() === run);

const outsideCode = (text: string, change: (part: string) => string) =>
  text
    .split(/(`+[^`]*`+)/)
    .map((part, i) => (i % 2 === 1 ? part : change(part)))
    .join("");

/** Many models write \( \) and \[ \] around formulas. */
const brackets = (text: string) =>
  outsideCode(text, (part) =>
    part
      .replace(/\\\[([\s\S]*?)\\\]/g, (_, formula: string) => `\n$$\n${formula.trim()}\n$$\n`)
      .replace(/\\\(([^\n]*?)\\\)/g, (_, formula: string) => `$${formula.trim()}$`),
  );

/**
 * Escapes dollar signs that are prices: a formula in a line begins and ends beside a character that is not a space,
 * and no digit follows it.
 */
const dollars = (text: string) =>
  outsideCode(text, (part) =>
    part.replace(/\$\$[\s\S]*?\$\$|(?<![\\$\w])\$(?![\s$])(?:[^$\n]*?[^$\s\\])\$(?![\d$])|\\\$|\$/g, (hit) =>
      hit === "$" ? "\\$" : hit,
    ),
  );
