/** Returns the status of an invitation. An expired one can no longer be used. */
export function invitationStatus(
  i: { usedAt: string | null; revokedAt: string | null; expiresAt: string },
  now = Date.now(),
): "used" | "REVOKED" | "EXPIRED" | "open" {
  if (i.usedAt) return "used";
  if (i.revokedAt) return "REVOKED";
  return Date.parse(i.expiresAt) <= now ? "EXPIRED" : "open";
}
