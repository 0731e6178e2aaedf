export const scopes = [
  { value: "READ", text: "Read everything that you can read." },
  { value: "SESSIONS", text: "Start, change, connect to and stop sessions." },
  { value: "FOLDERS", text: "Change folders and their files." },
  { value: "ACCOUNT", text: "Change your profile and your credentials." },
  {
    value: "ADMIN",
    text: "Use all your other permissions. Without this scope, a token has the permissions of a normal user.",
  },
] as const;

/** In days, except "never" and "until a date". */
export const lifetimes = [
  { value: "7", label: "7 days" },
  { value: "30", label: "30 days" },
  { value: "90", label: "90 days" },
  { value: "365", label: "1 year" },
  { value: "day", label: "Custom date" },
  { value: "never", label: "No expiration" },
];

/** Returns when a token expires: null for never, undefined while no date is selected. */
export function endsAt(lifetime: string, day: string, now = Date.now()): string | null | undefined {
  if (lifetime === "never") return null;
  if (lifetime !== "day") return new Date(now + Number(lifetime) * 86_400_000).toISOString();
  const end = new Date(`${day}T23:59:59`);
  return Number.isNaN(end.getTime()) ? undefined : end.toISOString();
}
