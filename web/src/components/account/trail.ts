import type { graphql } from "../../api/graphql";

type Tone = "ok" | "bad" | "done";
type LoginResult = ReturnType<typeof graphql.scalar<"LoginResult">>;

/** What a line of the login history says. */
export const loginResults: Record<LoginResult, { text: string; tone: Tone }> = {
  success: { text: "Logged in", tone: "ok" },
  wrong_credentials: { text: "Wrong password", tone: "bad" },
  wrong_code: { text: "Wrong code", tone: "bad" },
  code_needed: { text: "Password correct, code required", tone: "done" },
  throttled: { text: "Too many attempts", tone: "bad" },
  not_active: { text: "Account not active", tone: "bad" },
  address_refused: { text: "Network not allowed", tone: "bad" },
  too_many_logins: { text: "Too many logins", tone: "bad" },
  logout: { text: "Logged out", tone: "done" },
  revoked: { text: "Revoked by the user or an administrator", tone: "done" },
  evicted: { text: "Revoked in favor of a newer login", tone: "done" },
  expired: { text: "Expired", tone: "done" },
};

/** The results that are a refusal. */
export const refusals: readonly LoginResult[] = [
  "wrong_credentials",
  "wrong_code",
  "throttled",
  "not_active",
  "address_refused",
  "too_many_logins",
];

/** What an error class means to whom it happened. */
export const outcomes: Record<string, string> = {
  OK: "Done",
  INVALID_ARGUMENT: "Invalid input",
  NOT_FOUND: "Not found",
  ALREADY_EXISTS: "Already exists",
  PERMISSION_DENIED: "Not allowed",
  UNAUTHENTICATED: "Not logged in",
  FAILED_PRECONDITION: "Not possible in this state",
  RESOURCE_EXHAUSTED: "Limit exceeded",
  ABORTED: "Conflict with another change",
  UNAVAILABLE: "Server unavailable",
  DEADLINE_EXCEEDED: "Timeout",
  INTERNAL: "Internal error",
};

/** createSshKey → "Create SSH key". */
export function actionName(action: string): string {
  const words = action
    .replace(/([a-z\d])([A-Z])/g, "$1 $2")
    .split(" ")
    .map((w) => (/^(ssh|totp|id|url)$/i.test(w) ? w.toUpperCase() : w.toLowerCase()))
    .join(" ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
