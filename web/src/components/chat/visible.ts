/**
 * Characters that change how a text looks without being seen: control characters except tab and line breaks, marks of
 * direction, zero-width characters, tags and other invisible ones.
 */
const invisible = /(?![\t\n])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;

const joiner = "\u200d";
const pictograph = /\p{Extended_Pictographic}[\ufe0f\u{1f3fb}-\u{1f3ff}]*$/u;
const pictographNext = /^\p{Extended_Pictographic}/u;
/** Scripts that need joiners and non-joiners to be spelled. */
const joined = /[\p{Script=Arabic}\p{Script=Devanagari}\p{Script=Bengali}\p{Script=Malayalam}\p{Script=Sinhala}]$/u;
/** What a variation selector can follow: a pictograph, a digit of a keycap, a symbol, or a Chinese character. */
const varied = /[\p{Extended_Pictographic}\p{S}\d#*\p{Script=Han}]$/u;

/** Returns how an invisible character is shown. */
const escaped = (c: string) => `⟨U+${c.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0")}⟩`;

function needed(text: string, at: number, c: string): boolean {
  const before = text.slice(Math.max(0, at - 8), at);
  if (/\p{Variation_Selector}/u.test(c)) return varied.test(before);
  if (c !== joiner && c !== "\u200c") return false;
  if (joined.test(before)) return true;
  return c === joiner && pictograph.test(before) && pictographNext.test(text.slice(at + 1, at + 5));
}

/** Returns a text in which invisible characters are shown as escapes, except those that a script or an emoji needs. */
export const visible = (text: string): string =>
  text
    .replaceAll("\r\n", "\n")
    .replace(invisible, (c: string, at: number, whole: string) => (needed(whole, at, c) ? c : escaped(c)));
