import type { graphql } from "./api/graphql";
import { t } from "./i18n";

/** The values of an enum of the API. */
type Value<Enum extends string> = ReturnType<typeof graphql.scalar<Enum>>;

/** English for states, whatever has them: one state has one name on all pages. */
const states = {
  accepted: "Accepted",
  active: "Active",
  alive: "Alive",
  before_verification: "Pending approval",
  cancelled: "Cancelled",
  cloning: "Cloning",
  created: "Created",
  creating: "Starting",
  declined: "Declined",
  degraded: "Degraded",
  deleted: "Deleted",
  deleting: "Deleting",
  done: "Done",
  error: "Failed",
  expired: "Expired",
  failed: "Failed",
  healthy: "Healthy",
  inactive: "Inactive",
  left: "Left",
  lost: "Lost",
  owner_inactive: "Owner inactive",
  pending: "Pending",
  prepared: "Pulled",
  preparing: "Pulling",
  ready: "Ready",
  revoked: "Revoked",
  running: "Running",
  scheduled: "Scheduled",
  skipped: "Skipped",
  terminated: "Ended",
  terminating: "Stopping",
  trash: "In trash",
  unhealthy: "Unhealthy",
  unknown: "Unknown",
  waiting: "Pending",
  withdrawn: "Withdrawn",
  would_create: "Will be created",
  // Of things that are no enum in the API: plugins, devices on the page, invitations, rows of an import.
  backoff: "Waiting to restart",
  cut: "Partitioned",
  disabled: "Disabled",
  open: "Pending",
  rejected: "Not schedulable",
  starting: "Starting",
  used: "Used",
  wrong: "Invalid",
} satisfies Record<string, string>;

/** States of every kind. */
export type State = keyof typeof states;

/**
 * English for every value of the enums that pages show. The type checks that no value
 * is left out; the test compares with schema.graphql.
 */
export const words = {
  AccessEntity: {
    domain: "domain",
    project: "project",
    user: "user",
    credential: "credential",
    invitation: "invitation",
    identity_provider: "identity provider",
    role: "role",
    resource_policy: "policy",
    resource_group: "resource group",
    resource_preset: "preset",
    agent: "agent",
    registry: "registry",
    image: "image",
    volume: "volume",
    object_storage: "object storage",
    session: "session",
    session_template: "session template",
    vfolder: "folder",
    task: "task",
    audit: "audit log",
    system: "platform settings",
  } satisfies Record<Value<"AccessEntity">, string>,
  AccessOperation: {
    read: "read",
    create: "create",
    update: "update",
    delete: "delete",
    enter: "connect",
    read_files: "read files",
    write_files: "change files",
    impersonate: "act as the user",
    manage_members: "manage members",
    grant: "grant",
    transfer: "list and copy objects",
  } satisfies Record<Value<"AccessOperation">, string>,
  AgentStatus: states satisfies Record<Value<"AgentStatus">, string>,
  AppAudience: {
    PROJECT: "members of the project",
    EVERYONE: "everyone who is logged in",
    PUBLIC: "everybody, without a login",
  } satisfies Record<Value<"AppAudience">, string>,
  AppSource: {
    SESSION: "requested with the session",
    IMAGE: "described by the image",
    CATALOGUE: "installed in the image",
    FOUND: "found listening",
  } satisfies Record<Value<"AppSource">, string>,
  AppStatus: {
    STOPPED: "Stopped",
    STARTING: "Starting",
    RUNNING: "Running",
    FAILED: "Failed",
  } satisfies Record<Value<"AppStatus">, string>,
  CredentialStatus: states satisfies Record<Value<"CredentialStatus">, string>,
  DeviceHealth: states satisfies Record<Value<"DeviceHealth">, string>,
  DeviceSplit: {
    fill: "Fill devices",
    evenly: "Evenly",
    none: "Whole devices only",
  } satisfies Record<Value<"DeviceSplit">, string>,
  DeviceTopology: {
    prefer: "As close as possible",
    node: "On one NUMA node",
    root: "On one PCIe root",
    linked: "Linked",
  } satisfies Record<Value<"DeviceTopology">, string>,
  DomainSignUp: {
    off: "No one",
    invitation: "People with an invitation",
    approval: "Everyone, after approval",
  } satisfies Record<Value<"DomainSignUp">, string>,
  DrainAction: {
    reschedule: "Reschedule",
    terminate: "Stop",
  } satisfies Record<Value<"DrainAction">, string>,
  EventResult: {
    success: "OK",
    retry: "Failed, will be repeated",
    failure: "Failed",
    expired: "Timeout",
    info: "Information",
  } satisfies Record<Value<"EventResult">, string>,
  FileType: {
    file: "file",
    directory: "directory",
    symlink: "symbolic link",
    other: "special file",
  } satisfies Record<Value<"FileType">, string>,
  FolderPermission: {
    read_only: "read",
    read_write: "read and write",
    read_write_delete: "read, write and delete",
  } satisfies Record<Value<"FolderPermission">, string>,
  GPUDirectFeature: { RDMA: "GPUDirect RDMA", STORAGE: "GPUDirect Storage" } satisfies Record<
    Value<"GPUDirectFeature">,
    string
  >,
  IdleKind: {
    network: "No network activity",
    utilization: "Low utilization",
    memory: "Unused accelerator memory",
    lifetime: "Age",
  } satisfies Record<Value<"IdleKind">, string>,
  IdleMatch: {
    all: "all must be met",
    any: "one is enough",
  } satisfies Record<Value<"IdleMatch">, string>,
  ImageStatus: {
    alive: "Available",
    gone: "Missing",
  } satisfies Record<Value<"ImageStatus">, string>,
  ImportStatus: states satisfies Record<Value<"ImportStatus">, string>,
  LoginMethod: {
    password: "password",
    oidc: "identity provider",
  } satisfies Record<Value<"LoginMethod">, string>,
  LoginResult: {
    success: "Logged in",
    wrong_credentials: "Wrong password",
    wrong_code: "Wrong code",
    code_needed: "Password correct, code required",
    throttled: "Too many attempts",
    not_active: "Account not active",
    address_refused: "Network not allowed",
    too_many_logins: "Too many logins",
    logout: "Logged out",
    revoked: "Revoked by the user or an administrator",
    evicted: "Revoked in favor of a newer login",
    expired: "Expired",
  } satisfies Record<Value<"LoginResult">, string>,
  LostPolicy: {
    wait: "Wait",
    fail: "Stop",
    reschedule: "Reschedule",
  } satisfies Record<Value<"LostPolicy">, string>,
  NodeRole: {
    agent: "agent",
    storage: "storage proxy",
  } satisfies Record<Value<"NodeRole">, string>,
  ObjectAddressing: {
    path: "endpoint/bucket/key (path)",
    virtual: "bucket.endpoint/key (virtual host)",
  } satisfies Record<Value<"ObjectAddressing">, string>,
  ObjectExisting: {
    update: "keep identical ones, replace all others",
    overwrite: "replace all",
    fail: "keep all, and list them as failures",
  } satisfies Record<Value<"ObjectExisting">, string>,
  PlacementStrategy: {
    pack: "Pack",
    concentrated: "Concentrated",
    dispersed: "Dispersed",
    roundrobin: "Round robin",
  } satisfies Record<Value<"PlacementStrategy">, string>,
  PluginCheckLevel: {
    ok: "OK",
    warning: "Warning",
    error: "Error",
  } satisfies Record<Value<"PluginCheckLevel">, string>,
  Preemption: {
    off: "Off",
    terminate: "Stop",
    reschedule: "Stop and reschedule",
  } satisfies Record<Value<"Preemption">, string>,
  PreemptionScope: {
    user: "of the same user",
    project: "of the same project",
    domain: "of the same domain",
    group: "of everyone in the group",
  } satisfies Record<Value<"PreemptionScope">, string>,
  ProjectType: {
    general: "General",
    model_store: "Model store",
  } satisfies Record<Value<"ProjectType">, string>,
  QueueOrder: {
    fifo: "Oldest first",
    lifo: "Newest first",
    drf: "Smallest share first",
    fair_share: "Fair share",
  } satisfies Record<Value<"QueueOrder">, string>,
  RoleScope: {
    system: "Everywhere",
    domain: "One domain",
    project: "One project",
    object: "One object",
  } satisfies Record<Value<"RoleScope">, string>,
  ScopeKind: {
    user: "Users",
    project: "Projects",
  } satisfies Record<Value<"ScopeKind">, string>,
  SessionGroupPlacement: {
    spread: "spread",
    pack: "together",
  } satisfies Record<Value<"SessionGroupPlacement">, string>,
  SessionStatus: states satisfies Record<Value<"SessionStatus">, string>,
  SessionType: {
    interactive: "Interactive",
    batch: "Batch",
  } satisfies Record<Value<"SessionType">, string>,
  TaskStatus: states satisfies Record<Value<"TaskStatus">, string>,
  TerminationReason: {
    user_requested: "stopped by a user",
    completed: "command completed",
    failed: "command failed",
    out_of_memory: "out of memory",
    disk_exceeded: "disk limit exceeded",
    image_pull_failed: "image could not be pulled",
    start_failed: "start failed",
    deadline_exceeded: "time limit reached",
    agent_lost: "machine lost",
    kernel_lost: "container lost",
    shutdown: "machine shut down",
    dependency_failed: "a session that it depends on failed",
    preempted: "preempted",
    lifetime: "lifetime reached",
    drained: "machine drained",
    pending_timeout: "pending for too long",
    idle: "idle",
  } satisfies Record<Value<"TerminationReason">, string>,
  TokenScope: {
    read: "read",
    sessions: "sessions",
    folders: "folders",
    account: "account",
    admin: "admin",
  } satisfies Record<Value<"TokenScope">, string>,
  UnlistedSlots: {
    unlimited: "unlimited",
    zero: "zero",
  } satisfies Record<Value<"UnlistedSlots">, string>,
  UserRole: {
    user: "User",
    admin: "Domain administrator",
    superadmin: "Superadmin",
    monitor: "Monitor",
  } satisfies Record<Value<"UserRole">, string>,
  UserStatus: states satisfies Record<Value<"UserStatus">, string>,
  VfolderShareStatus: states satisfies Record<Value<"VfolderShareStatus">, string>,
  VfolderStatus: states satisfies Record<Value<"VfolderStatus">, string>,
  VfolderUsageMode: {
    general: "general",
    data: "data sets",
    model: "models",
  } satisfies Record<Value<"VfolderUsageMode">, string>,
  VolumePermission: {
    create_folder: "create folders",
    modify_folder: "change folders",
    delete_folder: "delete folders",
    mount: "mount folders",
    upload: "upload",
    download: "download",
    invite: "invite others",
    set_user_permission: "manage permissions of others",
  } satisfies Record<Value<"VolumePermission">, string>,
};

type Words = typeof words;

/** English for a value of an enum, in the language of the page. */
export const word = <Enum extends keyof Words>(kind: Enum, value: keyof Words[Enum] & string): string =>
  t((words[kind] as Record<string, string>)[value] ?? value);

/** English for a state; a state that a newer server has is shown as readable text. */
export const stateWord = (state: string): string => t((states as Record<string, string>)[state] ?? readable(state));

/** Types of sessions, which groups list as strings; types that pages do not offer are left out. */
export const typeWords = (types: readonly string[]): string[] =>
  (Object.keys(words.SessionType) as (keyof Words["SessionType"])[])
    .filter((type) => types.includes(type))
    .map((type) => word("SessionType", type));

/** The stages of a session in its history. */
const phases: Record<string, string> = {
  schedule: "Scheduling",
  prepare: "Image",
  create: "Start",
  run: "Run",
  terminate: "Stop",
};
export const phaseWord = (phase: string): string => t(phases[phase] ?? readable(phase));

/** What tasks do. */
const tasks: Record<string, string> = {
  "objectstorage.abort": "Clean up an object storage",
  "objectstorage.export": "Export to an object storage",
  "objectstorage.import": "Import from an object storage",
  "vfolder.clone": "Clone a folder",
  "vfolder.copy_files": "Copy files",
  "vfolder.delete": "Delete a folder",
  "vfolder.hand_over": "Hand over a folder",
  "volume.remove_orphan": "Delete an orphan",
  purge_user: "Delete a user",
};
export const taskWord = (kind: string): string => t(tasks[kind] ?? readable(kind));

/** What an error class of the API means to the user it happened to. */
const outcomes: Record<string, string> = {
  OK: "Done",
  INVALID_ARGUMENT: "Invalid input",
  NOT_FOUND: "Not found",
  ALREADY_EXISTS: "Already exists",
  PERMISSION_DENIED: "Not allowed",
  UNAUTHENTICATED: "Not logged in",
  FAILED_PRECONDITION: "Not possible in this state",
  RESOURCE_EXHAUSTED: "Limit exceeded",
  ABORTED: "Conflict with another change",
  UNAVAILABLE: "Server unavailable",
  DEADLINE_EXCEEDED: "Timeout",
  INTERNAL: "Internal error",
};
export const outcomeWord = (code: string): string => t(outcomes[code] ?? readable(code));

/** Names that plugins, agents and runtimes choose, as text: pull_image becomes "pull image". */
export const readable = (name: string): string => name.replace(/[_.]/g, " ");
