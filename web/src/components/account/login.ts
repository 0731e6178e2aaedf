import type { Failure } from "../../api/errors";

/** The form to show after a rejected login. */
export interface Next {
  step?: "who" | "code" | "room";
  /** Whether to show the server's message above that form. */
  show: boolean;
}

/** Returns the next form after a rejected login. `coded` is whether the login contained a code. */
export function afterLogin(failure: Failure, coded: boolean): Next {
  if (failure.code === "UNAUTHENTICATED")
    return failure.field === "code" ? { step: "code", show: coded } : { step: "who", show: true };
  if (failure.field === "force") return { step: "room", show: true };
  return failure.field === "logins" ? { step: "who", show: true } : { show: true };
}

/** Messages for the error codes of the OIDC callback, which docs/oidc.md lists. */
export const externalErrors: Record<string, string> = {
  provider: "This identity provider is no longer available.",
  unavailable: "Your identity provider does not respond correctly. Try again later.",
  state: "The login expired, was already used, or was started in another browser. Try again.",
  denied: "The login was cancelled, or your identity provider refused it.",
  token: "The response of your identity provider cannot be trusted. Ask an administrator.",
  unverified: "Your identity provider has not verified your e-mail.",
  email_domain: "Your e-mail is not allowed to log in with this provider.",
  unknown_user: "No account has your e-mail. Ask an administrator for an account.",
  inactive: "Your account is not active. Ask an administrator.",
  address: "Your account cannot log in from this network.",
  too_many_logins:
    "You have as many logins as your limits allow. To continue, revoke the oldest login. Your running sessions are not affected.",
  throttled: "Too many attempts from your network. Try again in 15 minutes.",
  internal: "The server had an internal error. Ask an administrator, and give them the request ID.",
};
