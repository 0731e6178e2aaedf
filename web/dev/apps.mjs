// Apps of the mock's sessions: one runs, one starts on demand, one fails, one was found.
import { GraphQLError } from "graphql";

export const ssh = {
  host: "ssh.berth.example",
  port: 2222,
  hostKey: "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJm0cKqkLZ0m1o6fYw9yqk3m2Gq3Yv1qk8wq2x3y4z5A",
};

const catalogue = [
  { name: "lab", title: "JupyterLab", port: 8081, source: "CATALOGUE", status: "RUNNING" },
  { name: "code", title: "VS Code", port: 8082, source: "CATALOGUE", status: "STOPPED" },
  { name: "tensorboard", title: "TensorBoard", port: 6006, source: "IMAGE", status: "STOPPED" },
  {
    name: "mlflow",
    title: "MLflow",
    port: 5000,
    source: "SESSION",
    status: "FAILED",
    reason: "The program ended with exit code 1 before it listened on port 5000.",
  },
];
const found = { name: "8000", title: "Port 8000", port: 8000, source: "FOUND", status: "RUNNING", startable: false };

const bySession = new Map();

export function appsOf(session) {
  if (!bySession.has(session)) {
    const kernelId = session.kernels[0].id;
    const own = session.image.name.startsWith("jupyter") ? catalogue : [];
    bySession.set(
      session,
      [...own, found].map((a) => ({ startable: true, reason: "", sharing: null, ...a, kernelId })),
    );
  }
  return session.terminatedAt ? [] : bySession.get(session);
}

function start(app) {
  Object.assign(app, { status: "STARTING", reason: "" });
  setTimeout(() => {
    if (app.status === "STARTING") app.status = "RUNNING";
  }, 5000);
}

/** The last output of an app. */
export const appLog = (app) => `[I 10:04:05] ${app} starts\n[I 10:04:06] serving on 127.0.0.1\n`;

/** The mutations of apps. */
export function root(sessionOf) {
  const find = (input) => {
    const app = appsOf(sessionOf(input)).find((a) => a.name === input.app);
    if (!app) throw new GraphQLError("no such app", { extensions: { code: "NOT_FOUND", field: "app" } });
    return app;
  };
  return {
    openApp: ({ input }) => {
      if (input.app) {
        const app = find(input);
        if (app.status === "STOPPED" || app.status === "FAILED") setTimeout(() => start(app), 1000);
      }
      const address = `http://127.0.0.1:${process.env.PORT ?? 8420}/app/${encodeURIComponent(input.app ?? input.port)}`;
      return { url: address, address, expiresAt: new Date(Date.now() + 30e3).toISOString() };
    },
    restartApp: ({ input }) => {
      const app = find(input);
      start(app);
      return { app };
    },
    stopApp: ({ input }) => ({ app: Object.assign(find(input), { status: "STOPPED" }) }),
    shareApp: ({ input: { audience, expiresAt = null, networks = [], ...input } }) => {
      const app = find(input);
      const id = app.sharing?.id ?? crypto.randomUUID();
      app.sharing = { id, audience, expiresAt, networks, createdAt: new Date().toISOString() };
      return { app };
    },
    unshareApp: ({ input }) => ({ app: Object.assign(find(input), { sharing: null }) }),
  };
}
