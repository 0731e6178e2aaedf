import { type Failure, fromResponse } from "./errors";

/** Sent with every request that may change something; other origins cannot. */
export const csrf = { "X-Berth-CSRF": "1" };

export interface Login {
  user: { id: string; email: string; role: string };
  initialPassword: boolean;
  expiresAt: string;
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

export async function login(email: string, password: string): Promise<Failure | null> {
  let response: Response;
  try {
    response = await fetch("/auth/login", {
      method: "POST",
      headers: { "Content-Type": "application/json", ...csrf },
      body: JSON.stringify({ email, password }),
    });
  } catch (error) {
    return { code: "UNAVAILABLE", message: String(error) };
  }
  if (!response.ok) return fromResponse(response);
  current = Promise.resolve((await response.json()) as Login);
  return null;
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
