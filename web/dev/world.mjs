// What the mock server plays: a small cluster in memory, with sessions that
// live their lives on timers. For work on the page only.
import { randomUUID } from "node:crypto";
import { EventEmitter } from "node:events";
import { appLog, appsOf } from "./apps.mjs";

export const bus = new EventEmitter().setMaxListeners(0);
const gib = 1024 ** 3;
const ago = (s) => new Date(Date.now() - s * 1000).toISOString();
const named = (__typename, name, more = {}) => ({ __typename, id: randomUUID(), name, ...more });
export const list = (nodes, first = 50) => ({
  totalCount: nodes.length,
  edges: nodes.slice(0, first).map((node) => ({ node, cursor: node.id })),
  pageInfo: { hasNextPage: nodes.length > first, hasPreviousPage: false },
});

export const domain = named("Domain", "default", { description: "", active: true, createdAt: ago(9e5), occupied: {} });
export const policy = named("ResourcePolicy", "research", {
  totalSlots: { cpu: "16", mem: String(64 * gib), "cuda.shares": "4" },
  maxSessions: 10,
  maxPendingSessions: 20,
  maxVfolders: 50,
  maxScopeBytes: 100 * gib,
  createdAt: ago(9e5),
});
export const project = named("Project", "vision", {
  description: "Digits and more",
  active: true,
  type: "GENERAL",
  createdAt: ago(9e5),
  domain,
  policy: null,
  occupied: {},
});
export const group = named("ResourceGroup", "default", {
  description: "",
  active: true,
  public: true,
  createdAt: ago(9e5),
});
const person = (email, fullName, role) => ({
  __typename: "User",
  id: randomUUID(),
  email,
  username: email.split("@")[0],
  fullName,
  role,
  status: "ACTIVE",
  createdAt: ago(9e5),
  lastLoginAt: ago(600),
  domain,
  policies: [],
  memberships: [],
  roleGrants: [],
  permissions: ["READ", "UPDATE"],
  account: null,
  occupied: {},
});
export const me = person("ada@berth.example", "Ada Kim", "SUPERADMIN");
export const other = person("lee@berth.example", "Lee Park", "USER");
export const users = [me, other, person("old@berth.example", "", "monitor")];
const members = users.slice(0, 2).map((user) => ({
  __typename: "Membership",
  id: randomUUID(),
  admin: user === me,
  user,
  project,
  createdAt: ago(8e5),
}));
project.memberships = ({ first }) => list(members, first);

export const registry = named("Registry", "local", {
  host: "127.0.0.1:5000",
  plainHttp: true,
  createdAt: ago(9e5),
  lastScannedAt: ago(900),
  proxy: "",
  certificates: "",
  repositories: [],
  scanEvery: 21600,
  signatureKeys: "",
  webhook: false,
  sweepable: true,
  sweepEvery: 86400,
  retention: [{ __typename: "RetentionRule", prefix: "users/", untaggedDays: 30, versions: 5 }],
  lastSweep: {
    __typename: "RegistrySweep",
    at: ago(7200),
    dryRun: false,
    repositories: 12,
    manifests: 4,
    blobs: 19,
    uploads: 1,
    freedBytes: 2_840_000_000,
    storedBytes: 41_000_000_000,
    freeBytes: 310_000_000_000,
    unclear: 0,
    unclearIn: "",
  },
  tagPolicy: "FOLLOW",
  lazyStart: true,
  projects: [],
});
export const images = ["python:3.11", "minimal:12", "jupyter:2026"].map((name, i) =>
  named("Image", name, {
    reference: `127.0.0.1:5000/${name}`,
    architecture: "x86_64",
    digest: `sha256:${"ab12".repeat(16)}`,
    sizeBytes: (i + 1) * 180e6,
    labels: {},
    status: "ALIVE",
    createdAt: ago(9e4),
    registry,
    moved: i === 0,
    tagDigest: `sha256:${"cd34".repeat(16)}`,
    tagPolicy: "REGISTRY",
    deprecated: i === 2 ? "Use jupyter:2027." : "",
    versions: [],
    signedBy: "",
    change: null,
  }),
);

const device = (agent, deviceId, capacity, more = {}) => ({
  __typename: "Device",
  id: randomUUID(),
  agent,
  deviceId,
  plugin: "",
  vendor: "",
  model: "",
  capacity,
  attributes: {},
  numaNode: null,
  pciAddress: "",
  pcieRoot: "",
  memoryBytes: 0,
  processingUnits: 0,
  groups: [],
  enforcement: null,
  parent: null,
  partitions: [],
  links: [],
  counters: [],
  metrics: [],
  health: "HEALTHY",
  healthMessage: "",
  allocatable: true,
  rejectReasons: [],
  occupied: {},
  holders: [],
  ...more,
});
function agent(name, gpus, more = {}) {
  const a = {
    __typename: "Agent",
    id: randomUUID(),
    name,
    status: "ALIVE",
    schedulable: true,
    version: "0.1.0",
    architecture: "x86_64",
    address: "10.0.0.7",
    firstSeenAt: ago(8e5),
    lastSeenAt: ago(2),
    resourceGroup: group,
    capacity: {},
    occupied: {},
    plugins: [{ name: "mock", version: "1.0.0", state: "RUNNING", message: "", restarts: 0 }],
    probes: [{ name: "overlayfs", ok: true, detail: "" }],
    stats: [],
    statsAt: null,
    links: [],
    ...more,
  };
  a.devices = [
    device(a, "cpu", { cpu: "8" }),
    device(a, "mem", { mem: String(32 * gib) }),
    ...Array.from({ length: gpus }, (_, i) =>
      device(
        a,
        `gpu${i}`,
        { "cuda.shares": "1.000" },
        { plugin: "mock", vendor: "Mock", model: "MX-80", attributes: {} },
      ),
    ),
  ];
  return a;
}
export const agents = [
  agent("dock-1", 4),
  agent("dock-2", 2),
  agent("dock-3", 0, { status: "LOST", lastSeenAt: ago(400) }),
];
for (const [i, image] of images.entries())
  Object.assign(image, {
    autoPull: i === 0 ? [group] : [],
    copies: agents.slice(0, 2 - (i % 2)).map((agent, at) => ({
      __typename: "ImageCopy",
      id: randomUUID(),
      agent,
      state: at === 0 ? "PRESENT" : i === 0 ? "PARTIAL" : "PULLING",
      message: "",
      doneBytes: at === 0 ? image.sizeBytes : 62e6,
      totalBytes: image.sizeBytes,
      usedAt: at === 0 ? ago(900) : null,
    })),
  });

Object.assign(agents[1].devices[3], {
  health: "UNHEALTHY",
  allocatable: false,
  rejectReasons: ["uncorrectable memory errors"],
});

function recount(a) {
  for (const d of a.devices) {
    d.occupied = {};
    for (const h of d.holders) d.occupied[h.slot] = String(Number(d.occupied[h.slot] ?? 0) + Number(h.amount));
  }
  a.capacity = { cpu: "8", mem: String(32 * gib), "cuda.shares": String(a.devices.length - 2) };
  a.occupied = Object.assign({}, ...a.devices.map((d) => d.occupied));
  a.stats = a.devices.slice(2).map((d) => ({
    name: "cuda_util",
    deviceId: d.deviceId,
    value: d.holders.length ? 30 + Math.random() * 60 : 0,
    capacity: 100,
    unit: "percent",
    quality: "MEASURED",
  }));
  a.statsAt = new Date().toISOString();
  bus.emit("agent", a);
}

export const sessions = [];
export function event(s, phase, toStatus, more = {}) {
  const at = new Date().toISOString();
  s.history = [
    ...s.history,
    {
      __typename: "SessionEvent",
      id: randomUUID(),
      at,
      phase,
      fromStatus: s.status,
      toStatus,
      result: "SUCCESS",
      attempt: 1,
      code: "",
      message: "",
      steps: [],
      ...more,
    },
  ];
  s.status = toStatus;
  s.version++;
  if (toStatus === "SCHEDULED") s.scheduledAt = at;
  if (toStatus === "RUNNING") s.startedAt = at;
  if (["TERMINATED", "CANCELLED", "ERROR"].includes(toStatus)) s.terminatedAt = at;
  s.kernels[0].status = toStatus;
  bus.emit("session", s);
}

function hold(s) {
  for (const a of agents.filter((x) => x.status === "ALIVE" && x.schedulable)) {
    const chosen = Object.entries(s.slots)
      .filter(([, n]) => Number(n) > 0)
      .map(([slot, n]) => [
        slot,
        n,
        a.devices.find(
          (d) => d.allocatable && Number(d.capacity[slot] ?? 0) - Number(d.occupied[slot] ?? 0) >= Number(n),
        ),
      ]);
    if (chosen.some(([, , d]) => !d)) continue;
    for (const [slot, amount, d] of chosen) {
      d.holders = [...d.holders, { slot, amount, since: new Date().toISOString(), session: s, mine: s.owner === me }];
      s.kernels[0].allocations.push({
        __typename: "Allocation",
        id: randomUUID(),
        slot,
        amount,
        createdAt: ago(0),
        freedAt: null,
        device: d,
      });
    }
    s.kernels[0].agent = a;
    recount(a);
    return a;
  }
  return null;
}

export function end(s, status = "TERMINATED", more = {}) {
  Object.assign(s, { terminationReason: "USER_REQUESTED", ...more });
  event(s, "terminate", status, { message: s.statusMessage });
  for (const a of agents) {
    for (const d of a.devices) d.holders = d.holders.filter((h) => h.session !== s);
    recount(a);
  }
}

export function launch(input, owner = me, quick = false) {
  const s = named("Session", input.name ?? `${input.type ?? "session"}-${Math.random().toString(36).slice(2, 6)}`, {
    version: 1,
    type: input.type ?? (input.command ? "BATCH" : "INTERACTIVE"),
    status: "PENDING",
    result: "UNDEFINED",
    exitCode: null,
    priority: 10,
    slots: input.slots,
    command: input.command ?? [],
    environment: input.environment ?? {},
    terminationReason: null,
    statusMessage: "",
    createdAt: new Date().toISOString(),
    scheduledAt: null,
    startedAt: null,
    terminatedAt: null,
    deadlineAt: null,
    owner,
    project,
    domain,
    resourceGroup: group,
    image: images.find((i) => i.reference === input.image || i.name === input.image) ?? images[0],
    history: [],
    pending: null,
    mounts: (input.mounts ?? []).map((m) => ({
      __typename: "SessionMount",
      id: randomUUID(),
      vfolder: folders.find((f) => f.id === m.vfolder),
      target: "/home/work/data",
      subpath: "",
      readOnly: m.readOnly ?? false,
      revokedAt: null,
    })),
    usage: [{ slot: "cpu", slotSeconds: "120" }],
    permissions: ["READ", "UPDATE", "DELETE", "ENTER"],
  });
  s.apps = () => appsOf(s);
  s.appLog = ({ app }) => appLog(app);
  s.kernels = [
    {
      __typename: "Kernel",
      id: randomUUID(),
      role: "MAIN",
      index: 0,
      hostname: "main1",
      status: "PENDING",
      statusMessage: "",
      exitCode: null,
      slots: s.slots,
      createdAt: ago(0),
      startedAt: null,
      terminatedAt: null,
      agent: null,
      allocations: [],
      variables: { BERTH_CLUSTER_HOST: "main", BERTH_CLUSTER_HOSTS: "main", BERTH_CLUSTER_SIZE: "1" },
      gpuDirect: [
        {
          __typename: "GPUDirect",
          feature: "RDMA",
          available: false,
          reason: "the session has no RDMA card; request rdma.nic or rdma.shared",
        },
      ],
      session: s,
    },
  ];
  sessions.unshift(s);
  event(s, "schedule", "PENDING", { message: "accepted" });
  const wait = quick ? 0 : 700;
  if (!hold(s)) {
    s.pending = {
      position: 1,
      decidedAt: ago(0),
      summary: "No agent has 1.00 cuda free on one device; 1 of 2 open agents has it only in pieces.",
      agents: 3,
      dropped: [
        { check: "not_schedulable", slot: "", count: 1 },
        { check: "slot_total", slot: "cuda.shares", count: 1 },
        { check: "slot_contiguity", slot: "cuda.shares", count: 1 },
      ],
      limits: [],
      nearest: { agent: "dock-1", slot: "cuda.shares", requested: s.slots["cuda.shares"] ?? "0", free: "0.25" },
    };
    event(s, "schedule", "PENDING", { result: "RETRY", code: "no_fit", message: "no agent fits" });
    return s;
  }
  const steps = [
    ["schedule", "SCHEDULED"],
    ["prepare", "PREPARING"],
    ["prepare", "PREPARED"],
    ["create", "CREATING"],
    ["run", "RUNNING"],
  ];
  for (const [i, [phase, status]] of steps.entries()) {
    setTimeout(
      () => {
        if (!s.terminatedAt)
          event(s, phase, status, {
            steps:
              status === "prepared"
                ? [{ name: "pull_image", startedAt: ago(1), endedAt: ago(0), ok: true, message: "already here" }]
                : [],
          });
        if (status === "RUNNING" && s.type === "BATCH" && !quick)
          setTimeout(
            () =>
              s.terminatedAt ||
              end(s, "TERMINATED", { result: "SUCCESS", exitCode: 0, terminationReason: "COMPLETED" }),
            9000,
          );
      },
      wait * (i + 1),
    );
  }
  return s;
}

export const volume = named("Volume", "local", {
  backend: "vfs",
  health: "HEALTHY",
  healthMessage: "",
  capabilities: [],
  totalBytes: 500 * gib,
  usedBytes: 20 * gib,
});
const scope = {
  __typename: "QuotaScope",
  id: randomUUID(),
  kind: "USER",
  limitBytes: 100 * gib,
  effectiveLimitBytes: 100 * gib,
  usedBytes: 3 * gib,
  usedInodes: null,
  limitInodes: null,
  enforcement: "HARD",
  measuredAt: ago(5),
  volume,
};
export const folders = [];
export function folder(name) {
  const f = named("Vfolder", name, {
    status: "READY",
    createdAt: new Date().toISOString(),
    deletedAt: null,
    quotaScope: scope,
    usageMode: "GENERAL",
    permission: "READ_WRITE",
    permissions: ["READ", "UPDATE", "DELETE", "READ_FILES", "WRITE_FILES"],
    usedBytes: null,
    fileCount: null,
    measuredAt: null,
    lastUsedAt: null,
    autoMount: false,
    shares: [],
    myShare: null,
    tasks: [],
    creator: me,
    owner: me,
    project: null,
    mountedBy: [],
    tree: new Map(),
  });
  folders.push(f);
  bus.emit("folder", f);
  return f;
}
for (const name of ["digits", "checkpoints"]) folder(name);
folders[0].tree.set("train.csv", 5_200_000).set("readme.md", 900).set("raw/a.bin", 70_000).set("raw/b.bin", 90_000);

const slots = (cpu, mem, share) => ({
  cpu: String(cpu),
  mem: String(mem * gib),
  ...(share ? { "cuda.shares": String(share) } : {}),
});
launch({ name: "notebook", image: "jupyter:2026", slots: slots(2, 4, 0.5) }, me, true);
launch(
  {
    name: "train-digits",
    type: "BATCH",
    image: "python:3.11",
    slots: slots(1, 1, 0.25),
    command: ["/bin/sh", "-c", "python3 train.py"],
  },
  me,
  true,
);
launch({ name: "lee-finetune", image: "python:3.11", slots: slots(2, 8, 1) }, other, true);
launch({ name: "lee-eval", image: "python:3.11", slots: slots(1, 2, 0.7) }, other, true);
launch({ name: "lee-two", image: "python:3.11", slots: slots(1, 2, 0.9) }, other, true);
launch({ name: "lee-three", image: "python:3.11", slots: slots(1, 2, 0.4) }, other, true);
launch({ name: "big-train", image: "python:3.11", slots: slots(4, 8, 1) }, me, true);
setInterval(() => agents.forEach(recount), 3000).unref();
