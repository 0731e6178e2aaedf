import type { graphql } from "./api/graphql";
import { t } from "./i18n";

/** The values of an enum of the API. */
type Value<Enum extends string> = ReturnType<typeof graphql.scalar<Enum>>;

/** English names of states. A state has the same name on all pages, whatever object has it. */
const states = {
  ACCEPTED: "Accepted",
  ACTIVE: "Active",
  ALIVE: "Alive",
  ASLEEP: "Asleep",
  BACKOFF: "Waiting to restart",
  BEFORE_VERIFICATION: "Pending approval",
  CANCELLED: "Cancelled",
  SUCCEEDED: "Succeeded",
  CLONING: "Cloning",
  CREATED: "Created",
  CREATING: "Starting",
  DECLINED: "Declined",
  DEGRADED: "Degraded",
  DELETED: "Deleted",
  DELETING: "Deleting",
  DISABLED: "Disabled",
  DONE: "Done",
  DRAINING: "Draining",
  ENDED: "Ended",
  ENDING: "Ending",
  ERROR: "Failed",
  EXPIRED: "Expired",
  FAILED: "Failed",
  HEALTHY: "Healthy",
  INACTIVE: "Inactive",
  LEFT: "Left",
  LOST: "Lost",
  OWNER_INACTIVE: "Owner inactive",
  PENDING: "Pending",
  PREPARED: "Pulled",
  PREPARING: "Pulling",
  READY: "Ready",
  REVOKED: "Revoked",
  RUNNING: "Running",
  SCHEDULED: "Scheduled",
  SERVING: "Serving",
  SKIPPED: "Skipped",
  STARTING: "Starting",
  TERMINATED: "Ended",
  TERMINATING: "Stopping",
  TRASH: "In trash",
  UNAVAILABLE: "Unavailable",
  UNHEALTHY: "Unhealthy",
  UNKNOWN: "Unknown",
  UPDATING: "Updating",
  WAITING: "Pending",
  WITHDRAWN: "Withdrawn",
  WOULD_CREATE: "Will be created",
  // States that are not in an enum of the API: devices on the page, invitations, rows of an import.
  cut: "Partitioned",
  open: "Pending",
  rejected: "Not schedulable",
  used: "Used",
  wrong: "Invalid",
} satisfies Record<string, string>;

/** Any state. */
export type State = keyof typeof states;

/**
 * English names of the values of all enums that pages show. The type requires every value; the test compares them with
 * schema.graphql.
 */
export const words = {
  AccessEntity: {
    DOMAIN: "domain",
    PROJECT: "project",
    USER: "user",
    CREDENTIAL: "credential",
    INVITATION: "invitation",
    IDENTITY_PROVIDER: "identity provider",
    ROLE: "role",
    RESOURCE_POLICY: "policy",
    RESOURCE_GROUP: "resource group",
    RESOURCE_PRESET: "preset",
    AGENT: "agent",
    REGISTRY: "registry",
    IMAGE: "image",
    VOLUME: "volume",
    OBJECT_STORAGE: "object storage",
    SESSION: "session",
    SESSION_TEMPLATE: "session template",
    DEPLOYMENT: "deployment",
    VFOLDER: "folder",
    TASK: "task",
    AUDIT: "audit log",
    SYSTEM: "platform settings",
  } satisfies Record<Value<"AccessEntity">, string>,
  AccessOperation: {
    READ: "read",
    CREATE: "create",
    UPDATE: "update",
    DELETE: "delete",
    ENTER: "connect",
    READ_FILES: "read files",
    WRITE_FILES: "change files",
    IMPERSONATE: "act as the user",
    MANAGE_MEMBERS: "manage members",
    GRANT: "grant",
    TRANSFER: "list and copy objects",
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
  ChatAnswerStatus: {
    WAITING: "Waiting",
    RUNNING: "Answering",
    DONE: "Done",
    STOPPED: "Stopped",
    FAILED: "Failed",
    INTERRUPTED: "Interrupted",
  } satisfies Record<Value<"ChatAnswerStatus">, string>,
  CredentialStatus: states satisfies Record<Value<"CredentialStatus">, string>,
  DeploymentEventKind: {
    CREATED: "Created",
    CHANGED: "Settings changed",
    SCALED: "Scaled",
    REFUSED: "Replica not started",
    UPDATING: "Change started",
    STEPPED: "More traffic",
    PROMOTED: "Promoted",
    COMPLETED: "Change completed",
    ROLLED_BACK: "Rolled back",
    REPLICA_READY: "Replica ready",
    REPLICA_FAILED: "Replica failed",
    ENDED: "Ended",
  } satisfies Record<Value<"DeploymentEventKind">, string>,
  DeploymentReplicaPhase: states satisfies Record<Value<"DeploymentReplicaPhase">, string>,
  DeploymentStatus: states satisfies Record<Value<"DeploymentStatus">, string>,
  DeploymentStrategyKind: {
    ROLLING: "Rolling",
    BLUE_GREEN: "Blue-green",
    CANARY: "Canary",
  } satisfies Record<Value<"DeploymentStrategyKind">, string>,
  DeviceHealth: states satisfies Record<Value<"DeviceHealth">, string>,
  DeviceSplit: {
    FILL: "Fill devices",
    EVENLY: "Evenly",
    NONE: "Whole devices only",
  } satisfies Record<Value<"DeviceSplit">, string>,
  DeviceTopology: {
    PREFER: "As close as possible",
    NODE: "On one NUMA node",
    ROOT: "On one PCIe root",
    LINKED: "Linked",
  } satisfies Record<Value<"DeviceTopology">, string>,
  DomainSignUp: {
    OFF: "No one",
    INVITATION: "People with an invitation",
    APPROVAL: "Everyone, after approval",
  } satisfies Record<Value<"DomainSignUp">, string>,
  DrainAction: {
    RESCHEDULE: "Reschedule",
    TERMINATE: "Stop",
  } satisfies Record<Value<"DrainAction">, string>,
  EventResult: {
    SUCCESS: "OK",
    RETRY: "Failed, will be repeated",
    FAILURE: "Failed",
    EXPIRED: "Timeout",
    INFO: "Information",
  } satisfies Record<Value<"EventResult">, string>,
  FileType: {
    FILE: "file",
    DIRECTORY: "directory",
    SYMLINK: "symbolic link",
    OTHER: "special file",
  } satisfies Record<Value<"FileType">, string>,
  FolderPermission: {
    READ_ONLY: "read",
    READ_WRITE: "read and write",
    READ_WRITE_DELETE: "read, write and delete",
  } satisfies Record<Value<"FolderPermission">, string>,
  GPUDirectFeature: { RDMA: "GPUDirect RDMA", STORAGE: "GPUDirect Storage" } satisfies Record<
    Value<"GPUDirectFeature">,
    string
  >,
  HolderScope: {
    DOMAIN: "domain",
    PROJECT: "project",
    USER: "user",
    KEYPAIR: "keypair",
  } satisfies Record<Value<"HolderScope">, string>,
  IdleKind: {
    NETWORK: "No network activity",
    UTILIZATION: "Low utilization",
    MEMORY: "Unused accelerator memory",
    LIFETIME: "Age",
  } satisfies Record<Value<"IdleKind">, string>,
  IdleMatch: {
    ALL: "all must be met",
    ANY: "one is enough",
  } satisfies Record<Value<"IdleMatch">, string>,
  ImageStatus: {
    ALIVE: "Available",
    GONE: "Missing",
  } satisfies Record<Value<"ImageStatus">, string>,
  ImageCopyState: {
    PULLING: "Pulling",
    PARTIAL: "In use, still being fetched",
    PRESENT: "Present",
  } satisfies Record<Value<"ImageCopyState">, string>,
  ImageBuildKind: {
    RECIPE: "Recipe",
    DOCKERFILE: "Dockerfile",
    REQUIREMENTS: "requirements.txt",
    ENVIRONMENT: "environment.yml",
    DEVCONTAINER: "devcontainer.json",
    GIT: "Git repository",
  } satisfies Record<Value<"ImageBuildKind">, string>,
  ImageBuildStatus: {
    WAITING: "Waiting",
    RUNNING: "Running",
    SUCCEEDED: "Succeeded",
    FAILED: "Failed",
    CANCELLED: "Cancelled",
  } satisfies Record<Value<"ImageBuildStatus">, string>,
  ImageTagPolicy: {
    REGISTRY: "As its registry says",
    PINNED: "Keep the digest",
    FOLLOW: "Take the new digest",
  } satisfies Record<Value<"ImageTagPolicy">, string>,
  ImageAttachmentKind: {
    SIGNATURE: "Signature",
    SBOM: "List of packages",
    VULNERABILITIES: "Vulnerabilities",
    OTHER: "Other",
  } satisfies Record<Value<"ImageAttachmentKind">, string>,
  ModelAPI: {
    CHAT: "chat",
    COMPLETIONS: "completions",
    EMBEDDINGS: "embeddings",
    RERANK: "rerank",
    AUDIO: "audio",
    IMAGES: "images",
    OTHER: "other APIs",
  } satisfies Record<Value<"ModelAPI">, string>,
  Severity: {
    CRITICAL: "critical",
    HIGH: "high",
    MEDIUM: "medium",
    LOW: "low",
    UNKNOWN: "unknown",
  } satisfies Record<Value<"Severity">, string>,
  ImageVisibility: {
    PUBLIC: "Everyone",
    PROJECT: "Project",
    PRIVATE: "Only the owner",
  } satisfies Record<Value<"ImageVisibility">, string>,
  ImportStatus: states satisfies Record<Value<"ImportStatus">, string>,
  LimitEnforcement: {
    HARD: "hard",
    DELAYED: "delayed",
    COOPERATIVE: "cooperative",
    NONE: "none",
  } satisfies Record<Value<"LimitEnforcement">, string>,
  LoginMethod: {
    PASSWORD: "password",
    OIDC: "identity provider",
  } satisfies Record<Value<"LoginMethod">, string>,
  LoginResult: {
    SUCCESS: "Logged in",
    WRONG_CREDENTIALS: "Wrong password",
    WRONG_CODE: "Wrong code",
    CODE_NEEDED: "Password correct, code required",
    THROTTLED: "Too many attempts",
    NOT_ACTIVE: "Account not active",
    ADDRESS_REFUSED: "Network not allowed",
    TOO_MANY_LOGINS: "Too many logins",
    LOGOUT: "Logged out",
    REVOKED: "Revoked by the user or an administrator",
    EVICTED: "Revoked in favor of a newer login",
    EXPIRED: "Expired",
  } satisfies Record<Value<"LoginResult">, string>,
  LostPolicy: {
    WAIT: "Wait",
    FAIL: "Stop",
    RESCHEDULE: "Reschedule",
  } satisfies Record<Value<"LostPolicy">, string>,
  MetricQuality: {
    MEASURED: "measured",
    ATTRIBUTED: "attributed",
    ESTIMATED: "estimated",
    UNAVAILABLE: "unavailable",
  } satisfies Record<Value<"MetricQuality">, string>,
  NodeRole: {
    AGENT: "agent",
    STORAGE: "storage proxy",
  } satisfies Record<Value<"NodeRole">, string>,
  ObjectAddressing: {
    PATH: "endpoint/bucket/key (path)",
    VIRTUAL: "bucket.endpoint/key (virtual host)",
  } satisfies Record<Value<"ObjectAddressing">, string>,
  ObjectExisting: {
    UPDATE: "keep identical ones, replace all others",
    OVERWRITE: "replace all",
    FAIL: "keep all, and list them as failures",
  } satisfies Record<Value<"ObjectExisting">, string>,
  PlacementStrategy: {
    PACK: "Pack",
    CONCENTRATED: "Concentrated",
    DISPERSED: "Dispersed",
    ROUNDROBIN: "Round robin",
  } satisfies Record<Value<"PlacementStrategy">, string>,
  PluginState: states satisfies Record<Value<"PluginState">, string>,
  PluginCheckLevel: {
    OK: "OK",
    WARNING: "Warning",
    ERROR: "Error",
  } satisfies Record<Value<"PluginCheckLevel">, string>,
  Preemption: {
    OFF: "Off",
    TERMINATE: "Stop",
    RESCHEDULE: "Stop and reschedule",
  } satisfies Record<Value<"Preemption">, string>,
  PreemptionScope: {
    USER: "of the same user",
    PROJECT: "of the same project",
    DOMAIN: "of the same domain",
    GROUP: "of everyone in the group",
  } satisfies Record<Value<"PreemptionScope">, string>,
  ProjectType: {
    GENERAL: "General",
    MODEL_STORE: "Model store",
  } satisfies Record<Value<"ProjectType">, string>,
  QueueOrder: {
    FIFO: "Oldest first",
    LIFO: "Newest first",
    DRF: "Smallest share first",
    FAIR_SHARE: "Fair share",
  } satisfies Record<Value<"QueueOrder">, string>,
  RegistryCheckStep: {
    REACHABLE: "Connection",
    TLS: "Encryption",
    LOGIN: "Login",
    LISTING: "List of images",
  } satisfies Record<Value<"RegistryCheckStep">, string>,
  RegistryTagPolicy: {
    PINNED: "Keep the digest",
    FOLLOW: "Take the new digest",
  } satisfies Record<Value<"RegistryTagPolicy">, string>,
  RoleScope: {
    SYSTEM: "Everywhere",
    DOMAIN: "One domain",
    PROJECT: "One project",
    OBJECT: "One object",
  } satisfies Record<Value<"RoleScope">, string>,
  ScanOutcome: {
    NEW: "New",
    MOVED: "Tag moved",
    UNCHANGED: "Unchanged",
    SKIPPED: "No Linux image",
    FAILED: "Failed",
    GONE: "Missing",
  } satisfies Record<Value<"ScanOutcome">, string>,
  ScopeKind: {
    USER: "Users",
    PROJECT: "Projects",
  } satisfies Record<Value<"ScopeKind">, string>,
  SessionGroupPlacement: {
    SPREAD: "spread",
    PACK: "together",
  } satisfies Record<Value<"SessionGroupPlacement">, string>,
  SessionStatus: states satisfies Record<Value<"SessionStatus">, string>,
  SessionType: {
    INTERACTIVE: "Interactive",
    BATCH: "Batch",
    INFERENCE: "Replica of a deployment",
  } satisfies Record<Value<"SessionType">, string>,
  TaskStatus: states satisfies Record<Value<"TaskStatus">, string>,
  TerminationReason: {
    USER_REQUESTED: "stopped by a user",
    COMPLETED: "command completed",
    FAILED: "command failed",
    OUT_OF_MEMORY: "out of memory",
    DISK_EXCEEDED: "disk limit exceeded",
    IMAGE_PULL_FAILED: "image could not be pulled",
    START_FAILED: "start failed",
    DEADLINE_EXCEEDED: "time limit reached",
    AGENT_LOST: "machine lost",
    KERNEL_LOST: "container lost",
    SHUTDOWN: "machine shut down",
    DEPENDENCY_FAILED: "a session that it depends on failed",
    PREEMPTED: "preempted",
    LIFETIME: "lifetime reached",
    DRAINED: "machine drained",
    PENDING_TIMEOUT: "pending for too long",
    IDLE: "idle",
  } satisfies Record<Value<"TerminationReason">, string>,
  TokenScope: {
    READ: "read",
    SESSIONS: "sessions",
    FOLDERS: "folders",
    ACCOUNT: "account",
    ADMIN: "admin",
  } satisfies Record<Value<"TokenScope">, string>,
  UnlistedSlots: {
    UNLIMITED: "unlimited",
    ZERO: "zero",
  } satisfies Record<Value<"UnlistedSlots">, string>,
  UsageDimension: {
    SLOT: "Slot",
    USER: "User",
    PROJECT: "Project",
    DOMAIN: "Domain",
    RESOURCE_GROUP: "Resource group",
    AGENT: "Agent",
    DEVICE: "Device",
    IMAGE: "Image",
    SESSION_TYPE: "Session type",
    SESSION: "Session",
    DEPLOYMENT: "Deployment",
    HOUR: "Hour",
    DAY: "Day",
    WEEK: "Week",
    MONTH: "Month",
  } satisfies Record<Value<"UsageDimension">, string>,
  UserRole: {
    USER: "User",
    ADMIN: "Domain administrator",
    SUPERADMIN: "Superadmin",
    MONITOR: "Monitor",
  } satisfies Record<Value<"UserRole">, string>,
  VolumeHealth: states satisfies Record<Value<"VolumeHealth">, string>,
  UserStatus: states satisfies Record<Value<"UserStatus">, string>,
  VfolderShareStatus: states satisfies Record<Value<"VfolderShareStatus">, string>,
  VfolderStatus: states satisfies Record<Value<"VfolderStatus">, string>,
  VfolderUsageMode: {
    GENERAL: "general",
    DATA: "data sets",
    MODEL: "models",
  } satisfies Record<Value<"VfolderUsageMode">, string>,
  VolumePermission: {
    CREATE_FOLDER: "create folders",
    MODIFY_FOLDER: "change folders",
    DELETE_FOLDER: "delete folders",
    MOUNT: "mount folders",
    UPLOAD: "upload",
    DOWNLOAD: "download",
    INVITE: "invite others",
    SET_USER_PERMISSION: "manage permissions of others",
  } satisfies Record<Value<"VolumePermission">, string>,
};

type Words = typeof words;

/** Returns the name of an enum value, in the language of the page. */
export const word = <Enum extends keyof Words>(kind: Enum, value: keyof Words[Enum] & string): string =>
  t((words[kind] as Record<string, string>)[value] ?? value);

/** Returns the name of a state. An unknown state of a newer server is shown as readable text. */
export const stateWord = (state: string): string =>
  t((states as Record<string, string>)[state] ?? readable(state.toLowerCase()));

/** Returns the names of session types, which groups list as strings. Types that pages do not offer are left out. */
export const typeWords = (types: readonly string[]): string[] =>
  (Object.keys(words.SessionType) as (keyof Words["SessionType"])[])
    .filter((type) => types.includes(type))
    .map((type) => word("SessionType", type));

/** The names of the phases in a session's history. */
const phases: Record<string, string> = {
  schedule: "Scheduling",
  prepare: "Image",
  create: "Start",
  run: "Run",
  terminate: "Stop",
};
export const phaseWord = (phase: string): string => t(phases[phase] ?? readable(phase));

/** The names of task kinds. */
const tasks: Record<string, string> = {
  "objectstorage.abort": "Clean up an object storage",
  "objectstorage.export": "Export to an object storage",
  "objectstorage.import": "Import from an object storage",
  "image.scan": "Scan a registry",
  "vfolder.clone": "Clone a folder",
  "vfolder.copy_files": "Copy files",
  "vfolder.delete": "Delete a folder",
  "vfolder.hand_over": "Hand over a folder",
  "volume.remove_orphan": "Delete an orphan",
  purge_user: "Delete a user",
};
export const taskWord = (kind: string): string => t(tasks[kind] ?? readable(kind));

/** Descriptions of the error codes of the API. */
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

/** Returns a name of a plugin, agent or runtime as text: pull_image becomes "pull image". */
export const readable = (name: string): string => name.replace(/[_.]/g, " ");
