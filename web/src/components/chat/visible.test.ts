import { expect, it } from "vitest";
import { visible } from "./visible";

it.each([
  ["ANSI escapes", "a\u001b[31mred", "a⟨U+001B⟩[31mred"],
  ["right-to-left overrides", "exe\u202Egnp", "exe⟨U+202E⟩gnp"],
  ["isolates", "\u2066a\u2069", "⟨U+2066⟩a⟨U+2069⟩"],
  ["zero-width spaces", "pass\u200Bword", "pass⟨U+200B⟩word"],
  ["byte order marks", "\uFEFFa", "⟨U+FEFF⟩a"],
  ["tags", "a\u{E0041}", "a⟨U+E0041⟩"],
  ["hidden variation selectors", "a\uFE01\u{E0101}", "a⟨U+FE01⟩⟨U+E0101⟩"],
  ["joiners between letters", "a\u200Db", "a⟨U+200D⟩b"],
  ["null bytes", "a\0b", "a⟨U+0000⟩b"],
  ["fillers", "\u3164", "⟨U+3164⟩"],
  ["line separators", "a\u2028b", "a⟨U+2028⟩b"],
])("shows %s", (_, text, shown) => expect(visible(text)).toBe(shown));

it.each(["👩‍👩‍👧", "❤️", "1️⃣", "👍🏽", "نمی‌خواهم", "क्‍ष", "한국어 日本語", "a\tb\nc"])("leaves %s as it is", (text) =>
  expect(visible(text)).toBe(text),
);
it("reads the line breaks of Windows", () => expect(visible("a\r\nb")).toBe("a\nb"));
