/** "ssh-ed25519 AAAA…" → "ED25519". */
export function keyKind(publicKey: string): string {
  const type = publicKey.trim().split(/\s/)[0] ?? "";
  return type
    .replace(/^(sk-)?(ssh|ecdsa-sha2)-/, "$1")
    .replace(/@.*$/, "")
    .toUpperCase();
}

/** Returns a file name for a key. */
export const fileOf = (name: string) => `berth_${name.trim().replace(/[^\p{L}\p{N}._-]+/gu, "_") || "key"}`;

/**
 * Returns a key name from the comment of a public key, with only the characters that names can have: "ada@home" →
 * "ada-home".
 */
export const nameOf = (publicKey: string) =>
  publicKey
    .trim()
    .split(/\s+/)
    .slice(2)
    .join(" ")
    .replace(/[^\p{L}\p{N} ._-]+/gu, "-")
    .slice(0, 64);

/** Reports whether the text is a private key, which must not be uploaded. */
export const isPrivate = (text: string) => /-----BEGIN [A-Z ]*PRIVATE KEY-----|^PuTTY-User-Key-File/m.test(text);
