import type { graphql } from "../../api/graphql";
import { words } from "../../words";

type Tone = "ok" | "bad" | "done";
type LoginResult = ReturnType<typeof graphql.scalar<"LoginResult">>;

/** What a line of the login history says. */
export const loginResults: Record<LoginResult, { text: string; tone: Tone }> = {
  success: { text: words.LoginResult.success, tone: "ok" },
  wrong_credentials: { text: words.LoginResult.wrong_credentials, tone: "bad" },
  wrong_code: { text: words.LoginResult.wrong_code, tone: "bad" },
  code_needed: { text: words.LoginResult.code_needed, tone: "done" },
  throttled: { text: words.LoginResult.throttled, tone: "bad" },
  not_active: { text: words.LoginResult.not_active, tone: "bad" },
  address_refused: { text: words.LoginResult.address_refused, tone: "bad" },
  too_many_logins: { text: words.LoginResult.too_many_logins, tone: "bad" },
  logout: { text: words.LoginResult.logout, tone: "done" },
  revoked: { text: words.LoginResult.revoked, tone: "done" },
  evicted: { text: words.LoginResult.evicted, tone: "done" },
  expired: { text: words.LoginResult.expired, tone: "done" },
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

/** createSshKey → "Create SSH key". */
export function actionName(action: string): string {
  const words = action
    .replace(/([a-z\d])([A-Z])/g, "$1 $2")
    .split(" ")
    .map((w) => (/^(ssh|totp|id|url)$/i.test(w) ? w.toUpperCase() : w.toLowerCase()))
    .join(" ");
  return words.charAt(0).toUpperCase() + words.slice(1);
}
