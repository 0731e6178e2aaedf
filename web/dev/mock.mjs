// A stand-in for the manager, to work on the page without one:
//   npm run mock         (listens on 127.0.0.1:8420, or PORT)
//   npm run dev
// Any e-mail with the password "berth" logs in. Never part of the product.
import { createHash, randomUUID } from "node:crypto";
import { on } from "node:events";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { buildSchema, execute, GraphQLError, graphql, subscribe } from "graphql";
import { useServer } from "graphql-ws/use/ws";
import { WebSocketServer } from "ws";
import * as apps from "./apps.mjs";
import * as chat from "./chat.mjs";
import { fieldResolver } from "./fill.mjs";
import * as notices from "./notices.mjs";
import * as serving from "./serving.mjs";
import * as w from "./world.mjs";

const schema = buildSchema(readFileSync(new URL("../../schema.graphql", import.meta.url), "utf8"));
let loggedIn = false;
let initialPassword = true;
const refuse = (code, message, more = {}) =>
  new GraphQLError(message, { extensions: { code, requestId: randomUUID(), ...more } });
const find = (all, id) => all.find((x) => x.id === id) ?? null;
const same =
  (where = {}) =>
  (x) =>
    Object.entries(where ?? {}).every(([key, value]) =>
      key === "nameContainsFold"
        ? x.name.includes(value)
        : key === "statusIn"
          ? value.includes(x.status)
          : key === "statusNotIn"
            ? !value.includes(x.status)
            : key === "ownerID"
              ? x.owner.id === value
              : key === "projectID"
                ? x.project?.id === value
                : key === "projectIDIn"
                  ? value.includes(x.project?.id)
                  : key === "kind"
                    ? value === (x.project ? "PROJECT" : "MINE")
                    : key === "revokedAtIsNil"
                      ? !x.revokedAt
                      : key === "or"
                        ? value.some((v) => same(v)(x))
                        : key.endsWith("ContainsFold")
                          ? x[key.slice(0, -12)].includes(value)
                          : x[key] === value,
    );
const conn =
  (all) =>
  ({ first = 20, where }) => {
    if (first > 100) throw refuse("INVALID_ARGUMENT", `${first} is not between 0 and 100`);
    return w.list(all.filter(same(where)), first);
  };
const held = () => {
  const sums = {};
  for (const h of w.agents.flatMap((a) => a.devices).flatMap((d) => d.holders))
    if (h.mine) sums[h.slot] = String(Number(sums[h.slot] ?? 0) + Number(h.amount));
  return sums;
};
const viewer = () => ({
  user: { ...w.me, occupied: held() },
  initialPassword,
  projects: [w.project],
  resourceGroups: [w.group],
});
const scanned = () => {
  const now = new Date().toISOString();
  const progress = { done: 3, total: 3, message: "unchanged: 2, failed: 1", attempt: 1 };
  const times = { createdAt: now, startedAt: now, endedAt: now };
  const title = "Scan registry local";
  return {
    __typename: "Task",
    id: randomUUID(),
    kind: "image.scan",
    title,
    status: "DONE",
    subjectID: w.registry.id,
    ...progress,
    ...times,
  };
};
const tokens = [];
const logins = [
  {
    __typename: "LoginSession",
    id: randomUUID(),
    createdAt: new Date().toISOString(),
    expiresAt: new Date(Date.now() + 9e8).toISOString(),
    lastSeenAt: new Date().toISOString(),
    clientAddress: "127.0.0.1",
    userAgent: "Chromium",
    current: true,
  },
];

function filesOf(folder, path) {
  const under = path ? `${path}/` : "";
  const seen = new Map();
  for (const [name, size] of folder.tree) {
    if (!name.startsWith(under)) continue;
    const [head, ...rest] = name.slice(under.length).split("/");
    if (head)
      seen.set(head, {
        name: head,
        path: under + head,
        type: rest.length ? "directory" : "file",
        size: rest.length ? 0 : size,
        modifiedAt: new Date().toISOString(),
      });
  }
  return { files: [...seen.values()], endCursor: null };
}
const withFiles = (f) => ({
  ...f,
  files: ({ path }) => filesOf(f, path),
  mountedBy: w.sessions.filter((s) => !s.terminatedAt && s.mounts.some((m) => m.vfolder === f)),
});
const everything = () => [
  ...chat.all(),
  ...serving.deployments,
  ...w.sessions,
  ...w.folders.map(withFiles),
  ...w.agents,
  ...w.users,
  ...w.images,
];
async function* stream(name, pick, start = []) {
  const events = on(w.bus, name);
  yield* start.map(pick);
  for await (const [value] of events) yield pick(value);
}

const root = {
  node: ({ id }) => find(everything(), id),
  server: { version: "mock", maxPageSize: 200, ssh: apps.ssh },
  viewer,
  sessions: (a) => conn(w.sessions)(a),
  usage: [
    { slot: "cpu", slotSeconds: "90000" },
    { slot: "mem", slotSeconds: String(3e5 * 1024 ** 3) },
    { slot: "cuda.shares", slotSeconds: "22320" },
  ],
  vfolderShares: ({ first }) => w.list([], first),
  vfolders: ({ first, where }) =>
    w.list(w.folders.map(withFiles).filter(same(where?.statusIn ? where : { status: "READY", ...where })), first),
  volumes: conn([w.volume]),
  agents: conn(w.agents),
  slotTypes: ["cpu", "mem", "cuda.shares"].map((name) => ({
    id: name,
    name,
    kind: "COUNT",
    displayName: name,
    description: "",
    unit: "",
    icon: name.startsWith("cuda") ? "nvidia" : "",
    quantum: name.endsWith("shares") ? "0.01" : "1",
  })),
  images: conn(w.images),
  registries: conn([w.registry]),
  scanResults: conn(
    w.images.map((i, n) => ({
      __typename: "ScanResult",
      id: `${i.id}-scan`,
      name: i.name,
      outcome: n === 1 ? "FAILED" : "UNCHANGED",
      digest: i.digest,
      message: n === 1 ? "its manifest is not JSON" : "",
      scannedAt: w.registry.lastScannedAt,
      registry: w.registry,
    })),
  ),
  users: conn(w.users),
  domains: conn([w.domain]),
  projects: conn([w.project]),
  resourcePolicies: conn([w.policy]),
  resourceGroups: conn([w.group]),
  accessTokens: conn(tokens),
  loginSessions: conn(logins),
  ...serving.root(conn, `http://127.0.0.1:${process.env.PORT ?? 8420}/v1`),
  ...chat.root(conn),
  ...notices.root(conn),
  ...apps.root(({ session }) => find(w.sessions, session)),
  createSession: ({ input }) => {
    if (Number(input.slots["cuda.shares"] ?? 0) > 4)
      throw refuse("INVALID_ARGUMENT", "no agent has so much", { field: "slots.cuda.shares", limit: "4" });
    return { session: w.launch(input) };
  },
  terminateSession: ({ input }) => {
    const s = find(w.sessions, input.id);
    w.end(s, s.status === "PENDING" ? "CANCELLED" : "TERMINATED");
    return { session: s };
  },
  renameSession: ({ input }) => {
    const s = find(w.sessions, input.id);
    s.name = input.name;
    w.event(s, s.history.at(-1).phase, s.status, { result: "INFO", message: "renamed" });
    return { session: s };
  },
  createVfolder: ({ input }) => {
    if (w.folders.some((f) => f.name === input.name && f.status === "READY"))
      throw refuse("ALREADY_EXISTS", "a folder has this name", { field: "name" });
    return { vfolder: w.folder(input.name) };
  },
  updateVfolder: ({ input }) => {
    const f = find(w.folders, input.id);
    f.name = input.name ?? f.name;
    w.bus.emit("folder", f);
    return { vfolder: f };
  },
  trashVfolder: ({ input }) => {
    const f = find(w.folders, input.id);
    f.status = "TRASH";
    w.bus.emit("folder", f);
    return { vfolder: f };
  },
  restoreVfolder: ({ input }) => {
    const f = find(w.folders, input.id);
    f.status = "READY";
    w.bus.emit("folder", f);
    return { vfolder: f };
  },
  deleteVfolder: ({ input }) => {
    const f = find(w.folders, input.id);
    f.status = "DELETED";
    w.bus.emit("folder", f);
    return {
      vfolder: f,
      task: {
        __typename: "Task",
        id: `task-${f.id}`,
        kind: "vfolder.delete",
        title: f.name,
        status: "DONE",
        done: 1,
        total: 1,
        message: "",
        attempt: 1,
        createdAt: new Date().toISOString(),
      },
    };
  },
  createUpload: ({ input }) => ({
    uploads: input.files.map((f) => ({
      path: f.path,
      url: "/storage/uploads",
      ticket: Buffer.from(JSON.stringify({ folder: input.vfolder, ...f })).toString("base64url"),
      expiresAt: new Date(Date.now() + 6e5).toISOString(),
    })),
  }),
  createDownload: ({ input }) => ({
    url: `/storage/download?path=${encodeURIComponent(input.path)}`,
    expiresAt: new Date(Date.now() + 6e4).toISOString(),
  }),
  createDirectories: ({ input }) => {
    for (const p of input.paths) find(w.folders, input.vfolder).tree.set(`${p}/.keep`, 0);
    return { results: input.paths.map((path) => ({ path, error: null })) };
  },
  moveFiles: ({ input }) => {
    const { tree } = find(w.folders, input.vfolder);
    for (const { from, to } of input.items) {
      tree.set(to, tree.get(from));
      tree.delete(from);
    }
    return { results: input.items.map(({ from }) => ({ path: from, error: null })) };
  },
  deleteFiles: ({ input }) => {
    for (const p of input.paths) find(w.folders, input.vfolder).tree.delete(p);
    return { results: input.paths.map((path) => ({ path, error: null })) };
  },
  changePassword: () => {
    initialPassword = false;
    return { viewer: viewer() };
  },
  createAccessToken: ({ input }) => {
    const t = {
      __typename: "AccessToken",
      id: randomUUID(),
      prefix: "berth_ab",
      createdAt: new Date().toISOString(),
      lastUsedAt: null,
      revokedAt: null,
      ...input,
    };
    tokens.push(t);
    return { accessToken: t, secret: "berth_abcdef0123456789" };
  },
  revokeAccessToken: ({ input }) => {
    const t = find(tokens, input.id);
    t.revokedAt = new Date().toISOString();
    return { accessToken: t };
  },
  updateUser: ({ input }) => ({ user: Object.assign(find(w.users, input.id), input) }),
  updateAgent: ({ input }) => {
    const a = find(w.agents, input.id);
    a.schedulable = input.schedulable ?? a.schedulable;
    w.bus.emit("agent", a);
    return { agent: a };
  },
  createJoinToken: {
    token: "join-abc",
    expiresAt: new Date(Date.now() + 36e5).toISOString(),
    command: "berthd agent --join join-abc --manager 10.0.0.1:7777",
  },
  scanRegistry: () => {
    w.registry.lastScannedAt = new Date().toISOString();
    return { registry: w.registry, task: scanned() };
  },
  testRegistry: {
    registry: w.registry,
    checks: [
      { step: "REACHABLE", works: true, text: "127.0.0.1:5000 answers." },
      { step: "TLS", works: true, text: "The registry uses http without encryption, as it is set." },
      { step: "LOGIN", works: true, text: "The registry asks for no login." },
      { step: "LISTING", works: true, text: "The registry lists its repositories." },
    ],
  },
  updateImage: ({ input }) => {
    const { autoPull, ...rest } = input;
    const image = Object.assign(find(w.images, input.id), rest);
    if (autoPull) image.autoPull = autoPull.includes(w.group.id) ? [w.group] : [];
    return { image };
  },
  prepullImage: () => ({ task: scanned() }),
  rollbackImage: ({ input }) => ({ image: find(w.images, input.id) }),
  sessionChanged: ({ id }) => stream("session", (s) => ({ sessionChanged: s }), id ? [find(w.sessions, id)] : []),
  agentChanged: () => stream("agent", (a) => ({ agentChanged: a }), w.agents),
  deploymentChanged: ({ id }) => serving.changes(id),
  vfolderChanged: () => stream("folder", (f) => ({ vfolderChanged: withFiles(f) })),
  kernelLogs: async function* () {
    let offset = 0;
    for (let n = 1; n < 500; n++) {
      const text =
        n < 40 ? `\u001b[2m[${n}]\u001b[0m epoch ${n} loss ${(2 / n).toFixed(4)}\n` : `[${n}] still learning\n`;
      const nextOffset = offset + Buffer.byteLength(text);
      yield { kernelLogs: { text, offset, nextOffset } };
      offset = nextOffset;
      if (n > 40) await new Promise((r) => setTimeout(r, 900));
    }
  },
  kernelStats: async function* ({ session }) {
    const kernelId = find(w.sessions, session).kernels[0].id;
    const metric = (name, value, capacity, unit, deviceId = "") => ({
      name,
      deviceId,
      value,
      capacity,
      unit,
      quality: "MEASURED",
    });
    for (let n = 0; ; n++) {
      yield {
        kernelStats: {
          kernelId,
          at: new Date().toISOString(),
          metrics: [
            metric("cpu_util", 40 + 30 * Math.sin(n / 3), 100, "percent"),
            metric("mem_used", 6e8 + n * 4e6, 4 * 1024 ** 3, "bytes"),
            metric("net_rx", n * n * 1000, 0, "bytes"),
            metric("cuda_util", 60 + 20 * Math.cos(n / 4), 100, "percent", "gpu0"),
          ],
        },
      };
      await new Promise((r) => setTimeout(r, n < 30 ? 30 : 1500));
    }
  },
};

const uploads = new Map();
async function body(req) {
  const parts = [];
  for await (const part of req) parts.push(part);
  return Buffer.concat(parts);
}
function problem(res, status, code, detail, headers = {}) {
  res.writeHead(status, { "Content-Type": "application/problem+json", "X-Request-Id": randomUUID(), ...headers });
  res.end(JSON.stringify({ title: code, status, code, detail }));
}
const login = () =>
  JSON.stringify({
    user: { id: w.me.id, email: w.me.email, role: w.me.role },
    initialPassword,
    expiresAt: new Date(Date.now() + 9e8).toISOString(),
  });
let wrong = 0;

const server = createServer(async (req, res) => {
  const { pathname } = new URL(req.url, "http://x");
  if (pathname.startsWith("/v1/")) return serving.answer(req, res, await body(req));
  if (req.method !== "GET" && req.method !== "HEAD" && !req.headers["x-berth-csrf"])
    return problem(res, 403, "PERMISSION_DENIED", "no X-Berth-CSRF");
  if (pathname === "/auth/login") {
    const { password } = JSON.parse(await body(req));
    if (password !== "berth")
      return ++wrong > 5
        ? problem(res, 429, "RESOURCE_EXHAUSTED", "too many tries", { "Retry-After": "9" })
        : problem(res, 401, "UNAUTHENTICATED", "wrong e-mail or password");
    loggedIn = true;
    wrong = 0;
    return res.end(login());
  }
  if (pathname === "/auth/logout") {
    loggedIn = false;
    res.writeHead(204);
    return res.end();
  }
  if (!loggedIn) return problem(res, 401, "UNAUTHENTICATED", "not logged in");
  if (pathname === "/auth/session") return res.end(login());
  if (pathname === "/graphql") {
    const { query, variables, operationName } = JSON.parse(await body(req));
    res.setHeader("Content-Type", "application/json");
    res.setHeader("X-Request-Id", randomUUID());
    return res.end(
      JSON.stringify(
        await graphql({
          schema,
          source: query,
          variableValues: variables,
          operationName,
          rootValue: root,
          fieldResolver,
        }),
      ),
    );
  }
  if (pathname.startsWith("/app/")) {
    res.setHeader("Content-Type", "text/plain; charset=utf-8");
    return res.end(`The app ${decodeURIComponent(pathname.slice(5))} of the mock.\n`);
  }
  if (pathname.startsWith("/storage/uploads")) {
    res.setHeader("Tus-Resumable", "1.0.0");
    if (req.method === "POST") {
      const ticket = JSON.parse(Buffer.from(req.headers.authorization.slice(7), "base64url"));
      const id = createHash("sha256").update(randomUUID()).digest("hex").slice(0, 32);
      uploads.set(id, { ...ticket, offset: 0 });
      res.writeHead(201, { Location: `uploads/${id}` });
      return res.end();
    }
    const u = uploads.get(pathname.split("/").at(-1));
    if (!u) return problem(res, 404, "NOT_FOUND", "no such upload");
    if (req.method === "PATCH") for await (const part of req) u.offset += part.length;
    if (u.offset === u.size) w.folders.find((f) => f.id === u.folder).tree.set(u.path, u.size);
    res.writeHead(req.method === "HEAD" ? 200 : 204, { "Upload-Offset": u.offset, "Upload-Length": u.size });
    return res.end();
  }
  res.writeHead(404);
  res.end();
});

const sockets = new WebSocketServer({ noServer: true, handleProtocols: () => "graphql-transport-ws" });
useServer(
  {
    schema,
    roots: { subscription: root },
    execute: (args) => execute({ ...args, fieldResolver }),
    subscribe: (args) => subscribe({ ...args, fieldResolver }),
  },
  sockets,
);
const terminals = new WebSocketServer({ noServer: true });
terminals.on("connection", (ws) => {
  const say = (text) => ws.send(Buffer.concat([Buffer.from([1]), Buffer.from(text)]));
  ws.send('{"type":"started"}');
  say("work@main1:~$ ");
  let line = "";
  ws.on("message", (data, binary) => {
    if (!binary) return;
    for (const c of data.toString()) {
      if (c !== "\r") {
        line += c;
        say(c);
        continue;
      }
      const [, words] = /^echo (.*)$/.exec(line) ?? [];
      const sum = /\$\(\((\d+)\*(\d+)\)\)/.exec(words ?? "");
      if (line === "exit") {
        ws.send('{"type":"exit","code":0}');
        return ws.close();
      }
      say(
        `\r\n${words === undefined ? (line ? `sh: ${line}: not found\r\n` : "") : `${sum ? words.replace(sum[0], sum[1] * sum[2]) : words}\r\n`}work@main1:~$ `,
      );
      line = "";
    }
  });
});
server.on("upgrade", (req, socket, head) => {
  const target = req.url.startsWith("/graphql") ? sockets : terminals;
  target.handleUpgrade(req, socket, head, (ws) => target.emit("connection", ws, req));
});
server.listen(Number(process.env.PORT ?? 8420), "127.0.0.1", () =>
  console.log(`mock on http://127.0.0.1:${server.address().port}`),
);
