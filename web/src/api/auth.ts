import { type Failure, fromResponse } from "./errors";

/**
 * The header that the server requires on every request that can change something. Pages of other origins cannot send
 * it.
 */
export const csrf = { "X-Berth-CSRF": "1" };

export interface Login {
  user: { id: string; email: string; role: string };
  initialPassword: boolean;
  expiresAt: string;
  /** What the user must do before they can use any other page. */
  due?: "password" | "totp";
}

/** The credentials of a login. The last two are sent only after the server has required them. */
export interface Credentials {
  email: string;
  password: string;
  code?: string;
  /** Revokes the oldest login if the user has too many. */
  force?: boolean;
}

let current: Promise<Login | null> | null = null;

/** Returns the logged-in user, or null. The answer is kept until a login or refreshSession() replaces it. */
export function session(): Promise<Login | null> {
  current ??= fetch("/auth/session", { headers: { Accept: "application/json" } }).then(
    async (r) => (r.ok ? ((await r.json()) as Login) : null),
    (error) => {
      current = null;
      throw error;
    },
  );
  return current;
}

/** Asks the server again who is logged in, for example after a required step is done. */
export function refreshSession(): Promise<Login | null> {
  current = null;
  return session();
}

const post = (path: string, body: unknown) =>
  fetch(path, { method: "POST", headers: { "Content-Type": "application/json", ...csrf }, body: JSON.stringify(body) });

const unreachable = (error: unknown): Failure => ({ code: "UNAVAILABLE", message: String(error) });

export async function login(shown: Credentials): Promise<Failure | null> {
  try {
    const response = await post("/auth/login", shown);
    if (!response.ok) return await fromResponse(response);
    current = Promise.resolve((await response.json()) as Login);
    return null;
  } catch (error) {
    return unreachable(error);
  }
}

/** Logs out and discards everything that was read with the login. */
export async function logout() {
  await fetch("/auth/logout", { method: "POST", headers: csrf }).catch(() => undefined);
  goToLogin();
}

/** Goes to the login page after the login has ended, here or elsewhere. The page load discards everything in memory. */
export function goToLogin() {
  if (location.pathname === "/login") return;
  const next = location.pathname === "/" ? "" : `?next=${encodeURIComponent(location.pathname + location.search)}`;
  location.assign(`/login${next}`);
}

/** Returns the path if it is a path of this page, and "/" otherwise, so that a link cannot redirect to another site. */
export const safePath = (next: string | undefined) => (next && /^\/(?![/\\])/.test(next) ? next : "/");

export interface Person {
  email: string;
  username: string;
  fullName: string;
  password: string;
  domain: string;
}

export type SignUp = { status: "pending" | "active"; failure?: undefined } | { failure: Failure };

export async function signUp(person: Person): Promise<SignUp> {
  try {
    const response = await post("/auth/signup", { ...person, invitation });
    if (!response.ok) return { failure: await fromResponse(response) };
    return (await response.json()) as { status: "pending" | "active" };
  } catch (error) {
    return { failure: unreachable(error) };
  }
}

let invitation = "";

/** Reports whether the visitor came with an invitation link. */
export const hasInvitation = () => invitation !== "";

/** Keeps the secret of an invitation link, in memory only. Reports whether the fragment contains one. */
export function keepInvitation(fragment: string): boolean {
  const secret = new URLSearchParams(fragment.replace(/^#/, "")).get("invitation");
  if (!secret) return false;
  invitation = secret;
  return true;
}
