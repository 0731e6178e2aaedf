import type { graphql } from "../../api/graphql";
import { words } from "../../words";

type Tone = "ok" | "bad" | "done";
type LoginResult = ReturnType<typeof graphql.scalar<"LoginResult">>;

/** The text of an entry of the login history. */
export const loginResults: Record<LoginResult, { text: string; tone: Tone }> = {
  SUCCESS: { text: words.LoginResult.SUCCESS, tone: "ok" },
  WRONG_CREDENTIALS: { text: words.LoginResult.WRONG_CREDENTIALS, tone: "bad" },
  WRONG_CODE: { text: words.LoginResult.WRONG_CODE, tone: "bad" },
  CODE_NEEDED: { text: words.LoginResult.CODE_NEEDED, tone: "done" },
  THROTTLED: { text: words.LoginResult.THROTTLED, tone: "bad" },
  NOT_ACTIVE: { text: words.LoginResult.NOT_ACTIVE, tone: "bad" },
  ADDRESS_REFUSED: { text: words.LoginResult.ADDRESS_REFUSED, tone: "bad" },
  TOO_MANY_LOGINS: { text: words.LoginResult.TOO_MANY_LOGINS, tone: "bad" },
  LOGOUT: { text: words.LoginResult.LOGOUT, tone: "done" },
  REVOKED: { text: words.LoginResult.REVOKED, tone: "done" },
  EVICTED: { text: words.LoginResult.EVICTED, tone: "done" },
  EXPIRED: { text: words.LoginResult.EXPIRED, tone: "done" },
};

/** The results of rejected logins. */
export const refusals: readonly LoginResult[] = [
  "WRONG_CREDENTIALS",
  "WRONG_CODE",
  "THROTTLED",
  "NOT_ACTIVE",
  "ADDRESS_REFUSED",
  "TOO_MANY_LOGINS",
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
