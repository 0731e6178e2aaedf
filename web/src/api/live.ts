import { type Client, createClient } from "graphql-ws";
import { useSyncExternalStore } from "react";
import { goToLogin } from "./auth";

export type LiveState = "connecting" | "live" | "reconnecting";

/** The delay before the n-th reconnection attempt: 0.3 s, doubling up to 10 s, with jitter. */
export const backoff = (attempt: number, random = Math.random()) =>
  Math.min(10_000, 300 * 2 ** Math.min(attempt, 10)) * (0.7 + 0.6 * random);

const pingEvery = 10_000;
const pongTimeout = 5_000;

/** The close code of the server when the login has ended. */
const unauthorized = 4401;

/** Asks the server whether the login has ended, because a rejected WebSocket handshake carries no reason. */
const loginEnded = () =>
  fetch("/auth/session").then(
    (r) => r.status === 401,
    () => false,
  );

let state: LiveState = "connecting";
/** Incremented by each reconnection: data that was read before can be outdated. */
let generation = 0;
const listeners = new Set<() => void>();

function set(next: LiveState) {
  if (next === state) return;
  state = next;
  for (const listener of listeners) listener();
}

let client: Client | null = null;

/** Returns the page's only WebSocket. It connects with the first subscription. */
export function socket(): Client {
  if (client) return client;
  let connected = false;
  let pongTimer: ReturnType<typeof setTimeout> | undefined;
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
      // A broken connection looks like an idle one, except that it returns no pong.
      ping: (received) => {
        if (!received) pongTimer = setTimeout(() => client?.terminate(), pongTimeout);
      },
      pong: (received) => {
        if (received) clearTimeout(pongTimer);
      },
      closed: (event) => {
        clearTimeout(pongTimer);
        set("reconnecting");
        if ((event as CloseEvent).code === unauthorized) goToLogin();
        else void loginEnded().then((gone) => gone && goToLogin());
      },
    },
  });
  addEventListener("offline", () => client?.terminate());
  return client;
}

function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

export const useLiveState = () => useSyncExternalStore(subscribe, () => state);
export const useGeneration = () => useSyncExternalStore(subscribe, () => generation);
