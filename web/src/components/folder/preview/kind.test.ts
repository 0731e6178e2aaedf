import { describe, expect, it } from "vitest";
import { alsoText, imageType, kindOf } from "./kind";

describe("a file is shown", () => {
  it.each([
    ["plot.PNG", "image"],
    ["a.b.jpeg", "image"],
    ["evil.svg", "image"],
    ["paper.pdf", "pdf"],
    ["analysis.ipynb", "notebook"],
    ["page.html", "text"],
    ["png", "text"],
    [".png", "text"],
    ["x.png.html", "text"],
    ["noname", "text"],
    ["a.__proto__", "text"],
    ["a.constructor", "text"],
  ] as const)("%s as %s", (name, kind) => expect(kindOf(name)).toBe(kind));
  it("an image by a type of the list, whatever is in it", () =>
    expect([imageType("a.svg"), imageType("A.JPG"), imageType("<script>.png")]).toEqual([
      "image/svg+xml",
      "image/jpeg",
      "image/png",
    ]));
  it("as text too, when it is text", () =>
    expect([alsoText("a.svg"), alsoText("a.ipynb"), alsoText("a.png"), alsoText("a.pdf")]).toEqual([
      true,
      true,
      false,
      false,
    ]));
});
