/** A run of words that both texts have, or that only one of them has. */
export interface Piece {
  kind: "same" | "added" | "removed";
  text: string;
}

/** The most words of a text that are compared one by one. */
export const mostWords = 2000;

const wordsOf = (text: string) => text.match(/\s+|[^\s]+/g) ?? [];

/**
 * Compares two texts by words: the longest list of words that both have in the same order stays, the others are removed
 * or added. Null if a text is too long.
 */
export function wordDiff(before: string, after: string): Piece[] | null {
  const a = wordsOf(before);
  const b = wordsOf(after);
  if (a.length > mostWords || b.length > mostWords) return null;
  const width = b.length + 1;
  // common[i * width + j] is the length of that list for the words from i and from j on.
  const common = new Uint16Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--) {
    for (let j = b.length - 1; j >= 0; j--) {
      const at = i * width + j;
      common[at] = a[i] === b[j] ? common[at + width + 1]! + 1 : Math.max(common[at + width] ?? 0, common[at + 1] ?? 0);
    }
  }
  const pieces: Piece[] = [];
  const add = (kind: Piece["kind"], text: string) => {
    const last = pieces.at(-1);
    if (last?.kind === kind) last.text += text;
    else pieces.push({ kind, text });
  };
  let i = 0;
  let j = 0;
  while (i < a.length || j < b.length) {
    const at = i * width + j;
    if (i < a.length && j < b.length && a[i] === b[j]) {
      add("same", a[i]!);
      i++;
      j++;
    } else if (j >= b.length || (i < a.length && common[at + width]! >= common[at + 1]!)) add("removed", a[i++]!);
    else add("added", b[j++]!);
  }
  return pieces;
}
