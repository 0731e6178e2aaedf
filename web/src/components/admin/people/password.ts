const letters = "abcdefghijkmnpqrstuvwxyzABCDEFGHJKLMNPQRSTUVWXYZ23456789"; // without characters that look alike
const defaultLength = 20;

/** Returns a random password of at least the length that a domain requires. */
export function makePassword(minLength = 0): string {
  const out: string[] = [];
  while (out.length < Math.max(defaultLength, minLength)) {
    const [n] = crypto.getRandomValues(new Uint8Array(1));
    // Skip the last values below 256: they would make the first characters more likely.
    if (n! < 256 - (256 % letters.length)) out.push(letters[n! % letters.length]!);
  }
  return out.join("");
}
