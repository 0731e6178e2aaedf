import { type Client, createClient } from "graphql-ws";
import { useSyncExternalStore } from "react";
import { leave } from "./auth";

export type LiveState = "connecting" | "live" | "reconnecting";

/** How long a lost connection waits before the n-th try: 0.3 s doubling to 10 s, with jitter. */
export const backoff = (attempt: number, random = Math.random()) =>
  Math.min(10_000, 300 * 2 ** Math.min(attempt, 10)) * (0.7 + 0.6 * random);

const pingEvery = 10_000;
const pongTimeout = 5_000;

/** The code that the server closes with when the login is over. */
const unauthorized = 4401;

/** Whether the server is there and no longer knows the login: a refused handshake does not say why. */
const over = () =>
  fetch("/auth/session").then(
    (r) => r.status === 401,
    () => false,
  );

let state: LiveState = "connecting";
/** Grows with each reconnection: what was read before may be stale. */
let generation = 0;
const listeners = new Set<() => void>();

function set(next: LiveState) {
  if (next === state) return;
  state = next;
  for (const tell of listeners) tell();
}

let client: Client | null = null;

/** The page's one WebSocket; it opens with the first subscription. */
export function socket(): Client {
  if (client) return client;
  let connected = false;
  let unanswered: ReturnType<typeof setTimeout> | undefined;
  client = createClient({
    url: `${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/graphql`,
    keepAlive: pingEvery,
    retryAttempts: Infinity,
    retryWait: (attempt) => new Promise((resolve) => setTimeout(resolve, backoff(attempt))),
    shouldRetry: (event) => (event as CloseEvent).code !== unauthorized,
    on: {
      connected: () => {
        if (connected) generation++;
        connected = true;
        set("live");
      },
      // A dead line looks like a quiet one: only a missing answer tells.
      ping: (received) => {
        if (!received) unanswered = setTimeout(() => client?.terminate(), pongTimeout);
      },
      pong: (received) => {
        if (received) clearTimeout(unanswered);
      },
      closed: (event) => {
        clearTimeout(unanswered);
        set("reconnecting");
        if ((event as CloseEvent).code === unauthorized) leave();
        else void over().then((gone) => gone && leave());
      },
    },
  });
  addEventListener("offline", () => client?.terminate());
  return client;
}

function subscribe(tell: () => void) {
  listeners.add(tell);
  return () => void listeners.delete(tell);
}

export const useLiveState = () => useSyncExternalStore(subscribe, () => state);
export const useGeneration = () => useSyncExternalStore(subscribe, () => generation);
