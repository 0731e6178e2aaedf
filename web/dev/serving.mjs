// Deployments of the mock: one serves, one changes, one has no room, one is asleep. Their models answer on /v1.
import { randomUUID } from "node:crypto";
import { GraphQLError } from "graphql";
import * as w from "./world.mjs";

const ago = (s) => new Date(Date.now() - s * 1000).toISOString();
const gib = 1024 ** 3;
const option = (name, type, help, more = {}) => ({
  __typename: "ModelVariantOption",
  name,
  type,
  help,
  minimum: null,
  maximum: null,
  choices: [],
  ...more,
});
const engine = (name, title, port, health, command, options = []) => ({
  __typename: "ModelVariant",
  name,
  title,
  port,
  health,
  metrics: "/metrics",
  command: command.split(" ").filter(Boolean),
  options,
});
export const variants = [
  engine(
    "vllm",
    "vLLM",
    8000,
    "/health",
    "vllm serve {model} --host 0.0.0.0 --port {port} --served-model-name {name}",
    [
      option("tensorParallelSize", "INTEGER", "accelerators for one replica", { minimum: 1, maximum: 64 }),
      option("maxModelLen", "INTEGER", "tokens of a prompt and its answer together", { minimum: 1, maximum: 1e7 }),
      option("gpuMemoryUtilization", "NUMBER", "fraction of the accelerator's memory", { minimum: 0.05, maximum: 1 }),
      option("dtype", "CHOICE", "type of the weights", { choices: ["auto", "half", "bfloat16"] }),
      option("enablePrefixCaching", "SWITCH", "keep the beginnings of prompts"),
      option("toolCallParser", "TEXT", "how calls of tools are read from answers"),
    ],
  ),
  engine("llamacpp", "llama.cpp", 8080, "/health", "llama-server --model {model} --port {port}"),
  engine("custom", "Custom", 8000, "", ""),
];

const request = (more = {}) => ({
  __typename: "SessionRequest",
  image: w.images[0].reference,
  type: "INFERENCE",
  slots: { cpu: "4", mem: String(16 * gib), "cuda.shares": "1" },
  command: ["vllm", "serve", "/models/8b", "--port", "8000"],
  environment: { HF_HUB_OFFLINE: "1" },
  mounts: [{ __typename: "MountRequest", vfolder: w.folders[0].id, target: "/models", subpath: "", readOnly: true }],
  ...more,
});
const revision = (number, more = {}) => ({
  __typename: "DeploymentRevision",
  id: randomUUID(),
  number,
  comment: "",
  variant: "vllm",
  options: { maxModelLen: "8192" },
  request: request(),
  image: w.images[0].reference,
  vfolder: w.folders[0],
  subpath: "8b",
  engine: {
    __typename: "DeploymentEngine",
    port: 8000,
    health: "/health",
    healthStatus: 200,
    interval: 5,
    timeout: 5,
    retries: 3,
    startTimeout: 1800,
    metrics: "/metrics",
  },
  createdAt: ago(86400 * (4 - number)),
  creator: w.me,
  ...more,
});
const replica = (number, phase, since, more = {}) => ({
  __typename: "DeploymentReplica",
  id: randomUUID(),
  revision: number,
  phase,
  phaseSince: ago(since),
  message: "",
  failed: false,
  createdAt: ago(since + 60),
  endedAt: null,
  session: w.sessions[0],
  ...more,
});
const event = (kind, since, message, more = {}) => ({
  __typename: "DeploymentEvent",
  id: randomUUID(),
  createdAt: ago(since),
  kind,
  revision: null,
  replicasBefore: null,
  replicasAfter: null,
  metric: "",
  value: null,
  limit: null,
  message,
  ...more,
});
const load = (replicas, requestsPerSecond) => ({
  __typename: "DeploymentLoad",
  inFlight: replicas.length * 4,
  waiting: 1,
  requestsPerSecond,
  errorRate: 0.004,
  promptTokensPerSecond: requestsPerSecond * 210,
  completionTokensPerSecond: requestsPerSecond * 64,
  cachedShare: 0.62,
  firstByteP50: 84,
  firstByteP95: 410,
  perTokenP50: 9.4,
  perTokenP95: 21,
  replicas: replicas.map((r) => ({
    __typename: "DeploymentReplicaLoad",
    replica: r.id,
    inFlight: 4,
    requestsPerSecond: requestsPerSecond / replicas.length,
    errorRate: 0,
    ejected: false,
  })),
});

export const deployments = [];
function deployment(name, status, { replicas = [], revisions = [revision(1)], events = [], ...more } = {}) {
  const d = {
    __typename: "Deployment",
    id: randomUUID(),
    name,
    description: "",
    status,
    message: "",
    shared: true,
    open: false,
    wanted: replicas.filter((r) => !r.endedAt).length,
    current: 1,
    target: 1,
    strategy: {
      __typename: "DeploymentStrategy",
      kind: "ROLLING",
      maxSurge: 1,
      maxUnavailable: 0,
      autoPromote: true,
      promoteAfter: 0,
      steps: [10, 50],
      stepTime: 120,
      deadline: 3600,
    },
    scaling: {
      __typename: "DeploymentScaling",
      min: 1,
      max: 1,
      zeroAfter: 900,
      upAfter: 30,
      downAfter: 300,
      targets: [],
      schedules: [],
    },
    traffic: [{ __typename: "DeploymentTraffic", revision: 1, percent: 100 }],
    concurrency: 0,
    drainSeconds: 60,
    createdAt: ago(3 * 86400),
    lastRequestAt: ago(4),
    endedAt: null,
    project: w.project,
    owner: w.me,
    load: null,
    permissions: ["READ", "UPDATE", "DELETE"],
    all: { replicas, revisions, events },
    replicas: ({ first, where }) =>
      w.list(
        d.all.replicas.filter((r) => !where?.phase || r.phase === where.phase),
        first,
      ),
    revisions: ({ first }) => w.list([...d.all.revisions].reverse(), first),
    events: ({ first }) => w.list(d.all.events, first),
    ...more,
  };
  deployments.push(d);
  return d;
}

const chat = [
  replica(2, "READY", 9000),
  replica(2, "READY", 8000),
  replica(3, "READY", 240),
  replica(3, "STARTING", 40),
];
chat[3].message = "The image is pulled: 3.1 of 8.4 GiB.";
chat[3].session = w.sessions[1] ?? null;
deployment("llama-3-8b", "UPDATING", {
  description: "The model that the assistants of the lab use",
  message: "Revision 3 gets 10 % of the requests, and 50 % in 1 min 20 s if it answers as well as revision 2.",
  replicas: [
    ...chat,
    replica(3, "ENDED", 600, {
      failed: true,
      endedAt: ago(600),
      session: null,
      message: "The engine exited with code 1: not enough memory for a context of 32768 tokens.",
    }),
  ],
  wanted: 3,
  revisions: [
    revision(1),
    revision(2, {
      options: { maxModelLen: "8192", enablePrefixCaching: "true" },
      comment: "keeps beginnings of prompts",
    }),
    revision(3, {
      options: { maxModelLen: "16384", enablePrefixCaching: "true" },
      request: request({ slots: { cpu: "4", mem: String(24 * gib), "cuda.shares": "1" } }),
      comment: "longer prompts",
    }),
  ],
  current: 2,
  target: 3,
  traffic: [
    { __typename: "DeploymentTraffic", revision: 2, percent: 90 },
    { __typename: "DeploymentTraffic", revision: 3, percent: 10 },
  ],
  load: load(chat.slice(0, 3), 12.3),
  strategy: {
    __typename: "DeploymentStrategy",
    kind: "CANARY",
    maxSurge: 1,
    maxUnavailable: 0,
    autoPromote: true,
    promoteAfter: 0,
    steps: [10, 50],
    stepTime: 120,
    deadline: 3600,
  },
  scaling: {
    __typename: "DeploymentScaling",
    min: 1,
    max: 8,
    zeroAfter: 900,
    upAfter: 30,
    downAfter: 300,
    targets: [{ __typename: "DeploymentTarget", metric: "requests", perReplica: 8, sum: true }],
    schedules: [
      {
        __typename: "DeploymentSchedule",
        from: "08:00",
        to: "18:00",
        days: [1, 2, 3, 4, 5],
        timeZone: "Europe/Berlin",
        replicas: 3,
      },
    ],
  },
  events: [
    event("STEPPED", 200, "Revision 3 gets 10 % of the requests.", { revision: 3 }),
    event("REPLICA_READY", 240, "", { revision: 3 }),
    event("REPLICA_FAILED", 600, "The engine exited with code 1: not enough memory for a context of 32768 tokens.", {
      revision: 3,
    }),
    event("UPDATING", 700, "From revision 2 to 3.", { revision: 3 }),
    event("SCALED", 8060, "21 requests in flight call for 3 replicas.", {
      replicasBefore: 2,
      replicasAfter: 3,
      metric: "requests",
      value: 21,
      limit: 8,
    }),
    event("COMPLETED", 86000, "", { revision: 2 }),
    event("CREATED", 3 * 86400, "", { revision: 1 }),
  ],
});
deployment("bge-small", "SERVING", { replicas: [replica(1, "READY", 50000)], load: load([{ id: "x" }], 41) });
deployment("big-moe", "DEGRADED", {
  message:
    "1 of 2 replicas waits: no machine has 4 free fGPU; it can start in about 25 min, when session train-2 ends.",
  replicas: [
    replica(1, "READY", 4000),
    replica(1, "STARTING", 300, { message: "No machine has 4 free fGPU: the most that any machine has free is 2." }),
  ],
  events: [event("REFUSED", 300, "No machine has 4 free fGPU.", { revision: 1 })],
});
deployment("night-owl", "ASLEEP", {
  message: "There were no requests for 15 min.",
  wanted: 0,
  lastRequestAt: ago(9000),
});

const apis = ["CHAT", "COMPLETIONS", "EMBEDDINGS", "RERANK", "AUDIO", "IMAGES", "OTHER"];
const keys = [
  {
    __typename: "DeploymentKey",
    id: randomUUID(),
    name: "assistant",
    prefix: "bmk_7Qf2",
    apis: ["CHAT", "COMPLETIONS"],
    requestsPerMinute: 600,
    tokensPerMinute: 0,
    tokenBudget: 2_000_000,
    usedRequests: 18_204,
    usedTokens: 1_310_022,
    createdAt: ago(86400),
    expiresAt: new Date(Date.now() + 30 * 864e5).toISOString(),
    lastUsedAt: ago(5),
    revokedAt: null,
    user: w.me,
    deployment: deployments[0],
  },
];

const find = (id) => deployments.find((d) => d.id === id);
const note = (d, kind, message, more = {}) => d.all.events.unshift(event(kind, 0, message, more));
const invalid = (field, message) =>
  new GraphQLError(message, { extensions: { code: "INVALID_ARGUMENT", field, requestId: randomUUID() } });
const merge = (into, from) => {
  for (const [k, v] of Object.entries(from ?? {})) if (v !== null && v !== undefined) into[k] = v;
};
const made = (d, input) =>
  revision(d.all.revisions.length + 1, {
    comment: input.comment ?? "",
    variant: input.variant ?? "custom",
    options: input.options ?? {},
    request: request({
      ...input.request,
      environment: input.request.environment ?? {},
      mounts: input.request.mounts ?? [],
    }),
    image: input.request.image,
    vfolder: w.folders.find((f) => f.id === input.model) ?? null,
    subpath: input.subpath ?? "",
    createdAt: ago(0),
  });

/** Sends a deployment, or all of them, every second. */
export async function* changes(id) {
  for (;;) {
    for (const d of deployments) if (!id || d.id === id) yield { deploymentChanged: d };
    await new Promise((r) => setTimeout(r, 1000));
  }
}

/** The fields of the root types; models is the address of the mock's models. */
export const root = (conn, models) => ({
  deployments: (a) => {
    const { endedAtIsNil, ...where } = a.where ?? {};
    return conn(deployments.filter((d) => !endedAtIsNil || !d.endedAt))({ ...a, where });
  },
  deploymentKeys: (a) =>
    conn(
      keys.filter(
        (k) =>
          (!a.where?.deploymentID || k.deployment?.id === a.where.deploymentID) &&
          (!a.where?.deploymentIDIsNil || !k.deployment),
      ),
    )({
      first: a.first,
      where: { revokedAtIsNil: true },
    }),
  modelVariants: variants,
  modelsURL: models,
  createDeployment: ({ input }) => {
    if (deployments.some((d) => d.name === input.name && !d.endedAt))
      throw invalid("name", `a deployment of the domain is already named "${input.name}"`);
    if (input.revision.variant === "vllm" && Number(input.revision.options?.maxModelLen ?? 1) > 1e6)
      throw invalid("revision.options.maxModelLen", "is above 1000000");
    const d = deployment(input.name, "STARTING", {
      description: input.description ?? "",
      shared: input.shared ?? false,
      message: "Replica 1 waits for its image.",
      replicas: [replica(1, "STARTING", 1, { message: "The image is pulled." })],
      revisions: [],
      traffic: [],
      createdAt: ago(0),
      lastRequestAt: null,
    });
    merge(d.scaling, input.scaling);
    d.all.revisions.push(made(d, input.revision));
    note(d, "CREATED", "");
    setTimeout(() => {
      Object.assign(d.all.replicas[0], { phase: "READY", message: "", phaseSince: ago(0) });
      Object.assign(d, { status: "SERVING", message: "", load: load(d.all.replicas, 0) });
      d.traffic = [{ __typename: "DeploymentTraffic", revision: 1, percent: 100 }];
      note(d, "REPLICA_READY", "", { revision: 1 });
    }, 4000);
    return { deployment: d };
  },
  updateDeployment: ({ input }) => {
    const d = find(input.id);
    const { id: _, strategy, scaling, replicas, ...settings } = input;
    if (scaling && scaling.max > 100) throw invalid("scaling.max", "100 is the most that your policy allows");
    merge(d, settings);
    merge(d.strategy, strategy);
    merge(d.scaling, scaling);
    if (replicas !== undefined && replicas !== null) {
      note(d, "SCALED", "A person changed it.", { replicasBefore: d.wanted, replicasAfter: replicas });
      d.wanted = replicas;
    }
    note(d, "CHANGED", Object.keys(input).slice(1).join(", "));
    return { deployment: d };
  },
  addDeploymentRevision: ({ input }) => {
    const d = find(input.deployment);
    d.all.revisions.push(made(d, input.revision));
    d.target = d.all.revisions.length;
    d.status = "UPDATING";
    note(d, "UPDATING", `From revision ${d.current} to ${d.target}.`, { revision: d.target });
    return { deployment: d };
  },
  promoteDeployment: ({ input }) => settle(find(input.id), (d) => d.target, "PROMOTED"),
  rollBackDeployment: ({ input }) =>
    settle(
      find(input.id),
      (d) => input.revision ?? (d.current === d.target ? d.current - 1 : d.current),
      "ROLLED_BACK",
    ),
  deleteDeployment: ({ input }) => {
    const d = find(input.id);
    Object.assign(d, { status: "ENDED", endedAt: ago(0), message: "", wanted: 0 });
    for (const r of d.all.replicas) Object.assign(r, { phase: "ENDED", endedAt: ago(0) });
    note(d, "ENDED", "");
    return { deployment: d };
  },
  createDeploymentKey: ({ input }) => {
    const key = {
      ...keys[0],
      usedRequests: 0,
      usedTokens: 0,
      apis,
      requestsPerMinute: 0,
      tokenBudget: 0,
      ...input,
      id: randomUUID(),
      revokedAt: null,
      prefix: "bmk_new1",
      createdAt: ago(0),
      lastUsedAt: null,
      deployment: find(input.deployment) ?? null,
    };
    keys.unshift(key);
    return { key, secret: `bmk_new1${randomUUID().replaceAll("-", "")}` };
  },
  updateDeploymentKey: ({ input }) => {
    const key = keys.find((k) => k.id === input.id);
    merge(key, input);
    return { key };
  },
  revokeDeploymentKey: ({ input }) => {
    const key = keys.find((k) => k.id === input.id);
    key.revokedAt = ago(0);
    return { key };
  },
});

function settle(d, revisionOf, kind) {
  const number = revisionOf(d);
  Object.assign(d, { current: number, target: number, status: "SERVING", message: "" });
  d.traffic = [{ __typename: "DeploymentTraffic", revision: number, percent: 100 }];
  note(d, kind, "", { revision: number });
  return { deployment: d };
}

const words =
  "A deployment keeps replicas of an engine behind one address.\n\nThis answer has <b>HTML</b> and ![an image](https://tracker.example/x.png), which are shown as text.".split(
    /(?<= )/,
  );

/** Answers a request to a model. The page asks from another origin. */
export async function answer(req, res, text) {
  res.setHeader("Access-Control-Allow-Origin", "*");
  res.setHeader("Access-Control-Allow-Headers", "authorization, content-type");
  if (req.method === "OPTIONS") return res.end();
  const body = JSON.parse(text);
  const d = deployments.find((one) => one.name === body.model && !one.endedAt);
  res.setHeader("Content-Type", "application/json");
  if (!d || !req.headers.authorization) {
    res.writeHead(d ? 401 : 404);
    return res.end(
      JSON.stringify({ error: { message: d ? "the key is missing" : `there is no model "${body.model}"` } }),
    );
  }
  if (!body.stream)
    return res.end(
      JSON.stringify({ data: [{ embedding: Array.from({ length: 384 }, Math.random) }], usage: { prompt_tokens: 4 } }),
    );
  res.setHeader("Content-Type", "text/event-stream");
  const say = (event) => res.write(`data: ${JSON.stringify(event)}\n\n`);
  if (d.status === "ASLEEP") res.write(": replica 1 starts: its image is pulled\n\n");
  for (const word of words) {
    await new Promise((r) => setTimeout(r, 40));
    if (res.destroyed) return;
    say({ choices: [body.prompt ? { text: word } : { delta: { content: word } }] });
  }
  say({ choices: [], usage: { prompt_tokens: 12, completion_tokens: words.length } });
  res.end("data: [DONE]\n\n");
}
