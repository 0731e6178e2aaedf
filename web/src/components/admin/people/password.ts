const letters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"; // none that looks like another
const usual = 20;

/** A random password of the length that a domain requires. */
export function makePassword(least = 0): string {
  const out: string[] = [];
  while (out.length < Math.max(usual, least)) {
    const [n] = crypto.getRandomValues(new Uint8Array(1));
    // The rest of 256 would make the first letters likelier.
    if (n! < 256 - (256 % letters.length)) out.push(letters[n! % letters.length]!);
  }
  return out.join("");
}
