import type { graphql } from "../../api/graphql";

type Tone = "ok" | "bad" | "done";
type LoginResult = ReturnType<typeof graphql.scalar<"LoginResult">>;

/** What a line of the login history says. */
export const loginResults: Record<LoginResult, { text: string; tone: Tone }> = {
  success: { text: "Logged in", tone: "ok" },
  wrong_credentials: { text: "Wrong password", tone: "bad" },
  wrong_code: { text: "Wrong code", tone: "bad" },
  code_needed: { text: "Password right, code asked for", tone: "done" },
  throttled: { text: "Too many tries", tone: "bad" },
  not_active: { text: "Account not active", tone: "bad" },
  address_refused: { text: "Network not allowed", tone: "bad" },
  too_many_logins: { text: "Too many logins", tone: "bad" },
  logout: { text: "Logged out", tone: "done" },
  revoked: { text: "Ended from the account page or by an admin", tone: "done" },
  evicted: { text: "Ended to make room for a newer one", tone: "done" },
  expired: { text: "Ended by its age", tone: "done" },
};

/** The results that are a refusal. */
export const refusals: readonly LoginResult[] = ["wrong_credentials", "wrong_code", "throttled", "not_active", "address_refused", "too_many_logins"];

/** What an error class means to whom it happened. */
export const outcomes: Record<string, string> = {
  OK: "Done",
  INVALID_ARGUMENT: "Bad input",
  NOT_FOUND: "Not found",
  ALREADY_EXISTS: "Exists already",
  PERMISSION_DENIED: "Not allowed",
  UNAUTHENTICATED: "Not logged in",
  FAILED_PRECONDITION: "Not possible then",
  RESOURCE_EXHAUSTED: "Over a limit",
  ABORTED: "Met another change",
  UNAVAILABLE: "Server was busy",
  DEADLINE_EXCEEDED: "Took too long",
  INTERNAL: "Broke on the server",
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
