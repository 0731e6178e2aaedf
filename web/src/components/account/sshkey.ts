/** "ssh-ed25519 AAAA…" → "ED25519". */
export function keyKind(publicKey: string): string {
  const type = publicKey.trim().split(/\s/)[0] ?? "";
  return type
    .replace(/^(sk-)?(ssh|ecdsa-sha2)-/, "$1")
    .replace(/@.*$/, "")
    .toUpperCase();
}

/** The name of a key as that of a file. */
export const fileOf = (name: string) => `berth_${name.trim().replace(/[^\p{L}\p{N}._-]+/gu, "_") || "key"}`;

/** A name of the comment that ssh-keygen writes, with what names may hold: "ada@home" → "ada-home". */
export const nameOf = (publicKey: string) =>
  publicKey
    .trim()
    .split(/\s+/)
    .slice(2)
    .join(" ")
    .replace(/[^\p{L}\p{N} ._-]+/gu, "-")
    .slice(0, 64);

/** Whether somebody is about to hand out the half that must stay with him. */
export const isPrivate = (text: string) => /-----BEGIN [A-Z ]*PRIVATE KEY-----|^PuTTY-User-Key-File/m.test(text);
