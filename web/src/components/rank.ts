/** Returns how well a label matches a search text; 0 for no match. */
export function score(label: string, typed: string): number {
  const text = label.toLowerCase();
  const want = typed.trim().toLowerCase();
  if (!want) return 1;
  if (text.startsWith(want)) return 4;
  if (text.split(/[\s:._-]+/).some((word) => word.startsWith(want))) return 3;
  if (text.includes(want)) return 2;
  let at = 0;
  for (const letter of want) {
    at = text.indexOf(letter, at) + 1;
    if (at === 0) return 0;
  }
  return 1;
}

/** Returns the matching entries, the best first. Equal matches keep their order. */
export function rank<T extends { label: string }>(entries: readonly T[], typed: string): T[] {
  return entries
    .map((entry) => ({ entry, points: score(entry.label, typed) }))
    .filter(({ points }) => points > 0)
    .sort((a, b) => b.points - a.points)
    .map(({ entry }) => entry);
}
