import { describe, expect, it } from "vitest";
import { parseNotebook } from "./notebook";

const notebook = (outputs: unknown[]) =>
  JSON.stringify({
    nbformat: 4,
    metadata: { kernelspec: { language: "python" } },
    cells: [{ cell_type: "code", execution_count: 3, source: ["a\n", "b"], outputs }],
  });
const outputs = (...given: unknown[]) => parseNotebook(notebook(given))?.cells[0]?.outputs;

describe("a notebook", () => {
  it("is read with its cells", () => {
    const read = parseNotebook(notebook([]));
    expect(read).toEqual({ language: "python", cells: [{ kind: "code", count: 3, source: "a\nb", outputs: [] }] });
  });
  it.each([
    ["", "not JSON"],
    ["[]", "a list"],
    ['{"nbformat":3,"worksheets":[]}', "of an old format"],
    ['{"nbformat":4,"cells":"x"}', "without cells"],
  ])("%s is not a notebook: %s", (text) => expect(parseNotebook(text)).toBeNull());
  it("accepts any content of cells", () =>
    expect(
      parseNotebook('{"nbformat":4,"cells":[null,7,{"cell_type":"evil","source":{"x":1},"outputs":"y"}]}')?.cells.map(
        (c) => c.source,
      ),
    ).toEqual(["", "", ""]));
});

describe("an output", () => {
  it("of a program is text without colors", () =>
    expect(outputs({ output_type: "stream", text: ["\u001b[0;31mred\u001b[0m\n"] })).toEqual([
      { kind: "text", text: "red\n" },
    ]));
  it("is shown as text if it is also HTML", () =>
    expect(
      outputs({ output_type: "execute_result", data: { "text/html": "<script>x</script>", "text/plain": "table" } }),
    ).toEqual([{ kind: "text", text: "table" }]));
  it("is left out if it is only HTML or a script", () =>
    expect(
      outputs({ output_type: "display_data", data: { "text/html": "<b>", "application/javascript": "x" } }),
    ).toEqual([{ kind: "left_out", types: ["text/html", "application/javascript"] }]));
  it("can be a bitmap image, but not an SVG", () => {
    expect(outputs({ output_type: "display_data", data: { "image/png": "iVBO\nRw==" } })).toEqual([
      { kind: "image", url: "data:image/png;base64,iVBORw==" },
    ]);
    expect(outputs({ output_type: "display_data", data: { "image/png": '"><script>' } })).toEqual([
      { kind: "left_out", types: ["image/png"] },
    ]);
    expect(outputs({ output_type: "display_data", data: { "image/svg+xml": "<svg/>" } })).toEqual([
      { kind: "left_out", types: ["image/svg+xml"] },
    ]);
  });
  it("of an error is its stack trace", () =>
    expect(outputs({ output_type: "error", ename: "E", evalue: "bad", traceback: ["one", "two"] })).toEqual([
      { kind: "error", text: "one\ntwo" },
    ]));
});
