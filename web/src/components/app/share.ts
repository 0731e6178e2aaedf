import { when } from "../format";

/** As many networks as the server stores for a share. */
export const mostNetworks = 32;

/** Networks as people write them: separated by lines, commas or spaces. Each once. */
export const networksOf = (text: string): string[] => [...new Set(text.split(/[\s,;]+/).filter(Boolean))];

/** How long an app can be shared, in hours. The empty value has no end of its own. */
export const expiries = [
  { value: "", label: "When the session ends" },
  { value: "1", label: "After 1 hour" },
  { value: "8", label: "After 8 hours" },
  { value: "24", label: "After 1 day" },
  { value: "168", label: "After 7 days" },
];

/** The choice that keeps the end that a share already has. */
export const keep = "keep";

/** When a share with a chosen expiry ends; null if it has no end of its own. */
export function expiryOf(choice: string, current: string | null, now = Date.now()): string | null {
  if (choice === keep) return current;
  return choice ? new Date(now + Number(choice) * 3_600_000).toISOString() : null;
}

/** The end of a share, as its row shows it. */
export const untilOf = (share: { expiresAt: string | null }) => (share.expiresAt ? when(share.expiresAt) : null);
