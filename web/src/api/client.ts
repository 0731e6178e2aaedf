import {
  type AnyVariables,
  Client,
  type Exchange,
  fetchExchange,
  type Operation,
  subscriptionExchange,
} from "@urql/core";
import { cacheExchange } from "@urql/exchange-graphcache";
import { map, pipe, tap } from "wonka";
import { csrf, goToLogin } from "./auth";
import { fromGraphQL } from "./errors";
import { socket } from "./live";
import { newest } from "./newest";

const embedded = () => null;

/** Types without an id. The cache keeps their objects inside the parent object. */
const withoutId = [
  "AgentLink",
  "AgentPlugin",
  "AgentPluginCheck",
  "AgentProbe",
  "BudgetStatus",
  "CapacityKey",
  "CapacityReport",
  "CapacityRow",
  "ChatAttachment",
  "ChatColumn",
  "ChatComparison",
  "ChatDelta",
  "ChatMetrics",
  "ChatModel",
  "ChatParameters",
  "ChatTally",
  "ChatUpdate",
  "Cluster",
  "DeploymentEngine",
  "DeploymentLoad",
  "DeploymentReplicaLoad",
  "DeploymentScaling",
  "DeploymentSchedule",
  "DeploymentStrategy",
  "DeploymentTarget",
  "DeploymentTraffic",
  "DeviceCounter",
  "DeviceHolder",
  "DeviceLink",
  "DroppedAgents",
  "DryRun",
  "EffectiveLimit",
  "EventStep",
  "EvictionsStopped",
  "File",
  "FileList",
  "FileResult",
  "IdleDryRun",
  "IdleDryRunEnd",
  "IdleThreshold",
  "ImportResult",
  "KernelStats",
  "LimitReached",
  "LogChunk",
  "LoginProvider",
  "Metric",
  "ModelVariant",
  "ModelVariantOption",
  "NearestFit",
  "NoticeRoutes",
  "NoticeSettings",
  "OrphanFolder",
  "OrphanScope",
  "PendingOrder",
  "PendingReport",
  "PendingStanding",
  "PresetFit",
  "Queue",
  "QueueEntry",
  "Refusal",
  "ResourceGroupAccess",
  "RolePermission",
  "SSHEndpoint",
  "ScanResult",
  "Server",
  "SessionIdle",
  "SessionUse",
  "ShareHolder",
  "ShareResult",
  "SignUpOffer",
  "SizeAdvice",
  "StorageProxy",
  "Suggestion",
  "TimeSeries",
  "TokenPrices",
  "UploadTarget",
  "UsageEntry",
  "UserAccount",
  "Viewer",
  "VolumeOrphans",
  "VolumePerformance",
  "WaitKey",
  "WaitRow",
  "WasteNumber",
  "WasteRow",
];

/** Returns a cache of objects by id. Each client needs its own. */
export const cache = cacheExchange({
  keys: {
    ...Object.fromEntries(withoutId.map((type) => [type, embedded])),
    App: (app) => `${app.kernelId}/${app.name}`,
    Retention: (row) => row.category as string,
  },
});

/** Goes to the login page when the server rejects the login. */
const loginExchange: Exchange =
  ({ forward }) =>
  (operations) =>
    pipe(
      forward(operations),
      tap(({ error }) => {
        if (error && fromGraphQL(error).code === "UNAUTHENTICATED") goToLogin();
      }),
    );

/** Sits between the cache and the network, and drops results that are older than the cached ones. */
const versionExchange = (): Exchange => {
  const apply = newest();
  return ({ forward }) =>
    (operations) =>
      pipe(
        forward(operations),
        map((result) => (result.data ? { ...result, data: apply(result.data) } : result)),
      );
};

const liveExchange = subscriptionExchange({
  forwardSubscription: (request) => ({
    subscribe: (sink) => ({
      unsubscribe: socket().subscribe({ query: request.query ?? "", variables: request.variables }, sink as never),
    }),
  }),
});

export const client = new Client({
  url: "/graphql",
  preferGetMethod: false,
  fetchOptions: { headers: csrf },
  requestPolicy: "cache-and-network",
  exchanges: [cache, loginExchange, versionExchange(), fetchExchange, liveExchange],
});

export type { AnyVariables, Operation };
