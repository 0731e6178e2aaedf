import { when } from "../format";

/** The most networks that the server stores for a share. */
export const maxNetworks = 32;

/** Returns the networks that were typed, separated by line breaks, commas or spaces, without duplicates. */
export const networksOf = (text: string): string[] => [...new Set(text.split(/[\s,;]+/).filter(Boolean))];

/** How long an app can be shared, in hours. With the empty value, the share does not expire. */
export const expiries = [
  { value: "", label: "When the session ends" },
  { value: "1", label: "After 1 hour" },
  { value: "8", label: "After 8 hours" },
  { value: "24", label: "After 1 day" },
  { value: "168", label: "After 7 days" },
];

/** The choice that keeps the current expiry of a share. */
export const keep = "keep";

/** Returns when a share with the selected expiry ends; null if it does not expire. */
export function expiryOf(choice: string, current: string | null, now = Date.now()): string | null {
  if (choice === keep) return current;
  return choice ? new Date(now + Number(choice) * 3_600_000).toISOString() : null;
}

/** Returns the expiry of a share as text. */
export const untilOf = (share: { expiresAt: string | null }) => (share.expiresAt ? when(share.expiresAt) : null);
