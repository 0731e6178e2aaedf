import { renderToStaticMarkup } from "react-dom/server";
import { describe, expect, it } from "vitest";
import AnnouncementText from "./AnnouncementText";

const html = (text: string) => renderToStaticMarkup(<AnnouncementText text={text} />);

describe("the text of an announcement", () => {
  it("has emphasis and links", () => {
    expect(html("**Friday** [more](https://example.org/a)")).toContain("<strong>Friday</strong>");
    expect(html("[more](https://example.org/a)")).toContain('href="https://example.org/a"');
  });
  it("has no HTML, images and scripts", () => {
    const out = html(
      "<img src=x onerror=alert(1)><script>alert(1)</script> ![x](https://example.org/a.png) [y](javascript:alert(1))",
    );
    expect(out).not.toMatch(/<img|<script|href="javascript/);
  });
});
