import type { Failure } from "../../api/errors";

/** What a refused login asks for next; no step is the one that it was refused at. */
export interface Next {
  step?: "who" | "code" | "room";
  /** Whether the refusal says more than the step does. */
  show: boolean;
}

/** Reads a refused login; `coded` tells that a code was sent with it. */
export function afterLogin(why: Failure, coded: boolean): Next {
  if (why.code === "UNAUTHENTICATED") return why.field === "code" ? { step: "code", show: coded } : { step: "who", show: true };
  if (why.field === "force") return { step: "room", show: true };
  return why.field === "logins" ? { step: "who", show: true } : { show: true };
}

/** The callback's words, as docs/oidc.md lists them. */
export const externalErrors: Record<string, string> = {
  provider: "This way to log in is not offered any more.",
  unavailable: "Your identity provider does not answer as it should. Try again later.",
  state: "That took too long, was used already, or began in another browser. Try again.",
  denied: "The login was cancelled, or your identity provider refused it.",
  token: "The answer of your identity provider cannot be trusted. Ask an admin.",
  unverified: "Your identity provider has not verified your e-mail.",
  email_domain: "Your e-mail is not one that may log in this way.",
  unknown_user: "Nobody here has your e-mail. Ask an admin for an account.",
  inactive: "Your account is not active. Ask an admin.",
  address: "Your account may not log in from this network.",
  too_many_logins: "You are logged in as often as your limits allow. The oldest login must end first; nothing that runs in your sessions is touched.",
  throttled: "Too many tries from your network. Wait a quarter of an hour.",
  internal: "Something broke on our side. Ask an admin, and name the request.",
};
