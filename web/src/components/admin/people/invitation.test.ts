import { expect, it } from "vitest";
import { invitationStatus } from "./invitation";

const now = Date.parse("2026-03-01T12:00:00Z");
const one = { usedAt: null, revokedAt: null, expiresAt: "2026-03-02T00:00:00Z" };

it.each([
  ["open", one],
  ["EXPIRED", { ...one, expiresAt: "2026-03-01T12:00:00Z" }],
  ["REVOKED", { ...one, revokedAt: "2026-02-28T00:00:00Z", expiresAt: "2026-02-01T00:00:00Z" }],
  ["used", { ...one, usedAt: "2026-02-28T00:00:00Z", expiresAt: "2026-02-01T00:00:00Z" }],
] as const)("is %s", (status, invitation) => expect(invitationStatus(invitation, now)).toBe(status));
