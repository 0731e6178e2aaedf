import { describe, expect, it } from "vitest";
import { imageType, isAlsoText, kindOf } from "./kind";

describe("the preview of a file", () => {
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
  ] as const)("of %s is %s", (name, kind) => expect(kindOf(name)).toBe(kind));
  it("of an image has a media type of the list, whatever the content", () =>
    expect([imageType("a.svg"), imageType("A.JPG"), imageType("<script>.png")]).toEqual([
      "image/svg+xml",
      "image/jpeg",
      "image/png",
    ]));
  it("can be text for a file that is also text", () =>
    expect([isAlsoText("a.svg"), isAlsoText("a.ipynb"), isAlsoText("a.png"), isAlsoText("a.pdf")]).toEqual([
      true,
      true,
      false,
      false,
    ]));
});
