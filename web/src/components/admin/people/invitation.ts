/** What became of an invitation; one that ran out was of no use any more. */
export function invitationStatus(
  i: { usedAt: string | null; revokedAt: string | null; expiresAt: string },
  now = Date.now(),
): "used" | "revoked" | "expired" | "open" {
  if (i.usedAt) return "used";
  if (i.revokedAt) return "revoked";
  return Date.parse(i.expiresAt) <= now ? "expired" : "open";
}
