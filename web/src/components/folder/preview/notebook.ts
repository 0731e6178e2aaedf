/** A cell as it is shown. Only text and images are kept: HTML and scripts of outputs are left out. */
export interface Cell {
  kind: "markdown" | "code" | "raw";
  count: number | null;
  source: string;
  outputs: Output[];
}

export type Output =
  | { kind: "text" | "error"; text: string }
  | { kind: "image"; url: string }
  | { kind: "left_out"; types: string[] };

export interface Notebook {
  language: string;
  cells: Cell[];
}

/** ANSI escape sequences, such as colors. */
const escapes = /\u001b\[[0-9;]*[A-Za-z]/g;
const base64 = /^[A-Za-z0-9+/=\s]*$/;

type Json = Record<string, unknown>;
const object = (value: unknown): Json =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Json) : {};
const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
/** Joins a text that a notebook may store as a list of lines. */
const joined = (value: unknown): string =>
  typeof value === "string"
    ? value
    : list(value)
        .filter((x) => typeof x === "string")
        .join("");

/** Reads a notebook of format 4; returns null for anything else. */
export function parseNotebook(text: string): Notebook | null {
  let read: unknown;
  try {
    read = JSON.parse(text);
  } catch {
    return null;
  }
  const { cells, nbformat, metadata } = object(read);
  if (nbformat !== 4 || !Array.isArray(cells)) return null;
  const about = object(metadata);
  const language = object(about.kernelspec).language ?? object(about.language_info).name;
  return { language: typeof language === "string" ? language : "", cells: cells.map((c) => cell(object(c))) };
}

function cell(c: Json): Cell {
  const kind = c.cell_type === "markdown" || c.cell_type === "raw" ? c.cell_type : "code";
  return {
    kind,
    count: typeof c.execution_count === "number" ? c.execution_count : null,
    source: joined(c.source),
    outputs: list(c.outputs).flatMap((o) => output(object(o))),
  };
}

function output(o: Json): Output[] {
  if (o.output_type === "stream") return [{ kind: "text", text: joined(o.text).replace(escapes, "") }];
  if (o.output_type === "error") {
    const trace =
      list(o.traceback)
        .filter((x) => typeof x === "string")
        .join("\n") || `${joined(o.ename)}: ${joined(o.evalue)}`;
    return [{ kind: "error", text: trace.replace(escapes, "") }];
  }
  const data = object(o.data);
  for (const type of ["image/png", "image/jpeg", "image/gif", "image/webp"]) {
    const image = joined(data[type]);
    if (image && base64.test(image)) return [{ kind: "image", url: `data:${type};base64,${image.replace(/\s/g, "")}` }];
  }
  const plain = joined(data["text/plain"]) || joined(data["text/markdown"]) || joined(data["text/latex"]);
  if (plain) return [{ kind: "text", text: plain.replace(escapes, "") }];
  const types = Object.keys(data);
  return types.length > 0 ? [{ kind: "left_out", types }] : [];
}
