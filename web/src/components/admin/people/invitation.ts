/** What became of an invitation; one that ran out was of no use any more. */
export function invitationStatus(
  i: { usedAt: string | null; revokedAt: string | null; expiresAt: string },
  now = Date.now(),
): "used" | "REVOKED" | "EXPIRED" | "open" {
  if (i.usedAt) return "used";
  if (i.revokedAt) return "REVOKED";
  return Date.parse(i.expiresAt) <= now ? "EXPIRED" : "open";
}
