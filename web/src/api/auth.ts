import { type Failure, fromResponse } from "./errors";

/** Sent with every request that may change something; other origins cannot. */
export const csrf = { "X-Berth-CSRF": "1" };

export interface Login {
  user: { id: string; email: string; role: string };
  initialPassword: boolean;
  expiresAt: string;
  /** What must be done before anything else. */
  due?: "password" | "totp";
}

/** The credentials of a login. The last two are sent after the server has asked for them. */
export interface Credentials {
  email: string;
  password: string;
  code?: string;
  /** End the oldest login to make room. */
  force?: boolean;
}

let current: Promise<Login | null> | null = null;

/** Who is logged in; asks the server once until something changes it. */
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

/** The same, asked anew: something that was due may be done. */
export function renewed(): Promise<Login | null> {
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

/** Forgets the login and everything that was read with it. */
export async function logout() {
  await fetch("/auth/logout", { method: "POST", headers: csrf }).catch(() => undefined);
  leave();
}

/** The login is over, here or elsewhere: back to the login page, with nothing kept in memory. */
export function leave() {
  if (location.pathname === "/login") return;
  const next = location.pathname === "/" ? "" : `?next=${encodeURIComponent(location.pathname + location.search)}`;
  location.assign(`/login${next}`);
}

/** Only paths of this page: an address elsewhere must not get the visitor. */
export const own = (next: string | undefined) => (next && /^\/(?![/\\])/.test(next) ? next : "/");

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

/** Whether one came by an invitation. */
export const invited = () => invitation !== "";

/** Keeps the secret of an invitation link in memory alone; true when the fragment has one. */
export function keepInvitation(fragment: string): boolean {
  const secret = new URLSearchParams(fragment.replace(/^#/, "")).get("invitation");
  if (!secret) return false;
  invitation = secret;
  return true;
}
