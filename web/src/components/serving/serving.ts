import { graphql, type ResultOf } from "../../api/graphql";
import { trim } from "../format";
import { RequestParts } from "../launch/saved";

export const LoadParts = graphql(`
  fragment LoadParts on DeploymentLoad @_unmask {
    inFlight waiting requestsPerSecond errorRate promptTokensPerSecond completionTokensPerSecond cachedShare
    firstByteP50 firstByteP95 perTokenP50 perTokenP95
    replicas { replica inFlight requestsPerSecond errorRate ejected }
  }
`);

/** What changes while a deployment serves. */
export const DeploymentParts = graphql(
  `
  fragment DeploymentParts on Deployment @_unmask {
    id name description status message shared open recorded wanted current target concurrency drainSeconds
    createdAt lastRequestAt endedAt permissions
    project { id name } owner { id email }
    traffic { revision percent }
    ready: replicas(first: 1, where: { phase: READY }) { totalCount }
    load { ...LoadParts }
    tokenPrices { input cachedInput output }
    strategy { kind maxSurge maxUnavailable autoPromote promoteAfter steps stepTime deadline }
    scaling {
      min max zeroAfter upAfter downAfter
      targets { metric perReplica sum } schedules { from to days timeZone replicas }
    }
  }
`,
  [LoadParts],
);

const DetailParts = graphql(
  `
  fragment DetailParts on Deployment @_unmask {
    ...DeploymentParts
    replicas(first: 50, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
      totalCount
      edges { node {
        id revision phase phaseSince message failed createdAt endedAt session { id name status }
      } }
    }
  }
`,
  [DeploymentParts],
);
export const DeploymentQuery = graphql(
  `
  query Deployment($id: ID!) {
    node(id: $id) { ... on Deployment { ...DetailParts } }
    modelsURL
  }
`,
  [DetailParts],
);
export const DeploymentChanged = graphql(
  `
  subscription DeploymentChanged($id: ID!) { deploymentChanged(id: $id) { ...DetailParts } }
`,
  [DetailParts],
);

export const RevisionParts = graphql(
  `
  fragment RevisionParts on DeploymentRevision @_unmask {
    id number comment variant options image subpath createdAt vfolder { id name } creator { id email }
    engine { port health healthStatus interval timeout retries startTimeout metrics }
    request { ...RequestParts }
  }
`,
  [RequestParts],
);

export const VariantsQuery = graphql(`
  query ModelVariants {
    modelVariants {
      name title command port health options { name type help minimum maximum choices }
    }
  }
`);

export const CreateDeployment = graphql(`
  mutation CreateDeployment($input: CreateDeploymentInput!) { createDeployment(input: $input) { deployment { id name } } }
`);
export const AddRevision = graphql(
  `
  mutation AddDeploymentRevision($input: AddDeploymentRevisionInput!) {
    addDeploymentRevision(input: $input) { deployment { ...DeploymentParts } }
  }
`,
  [DeploymentParts],
);
export const UpdateDeployment = graphql(
  `
  mutation UpdateDeployment($input: UpdateDeploymentInput!) {
    updateDeployment(input: $input) { deployment { ...DeploymentParts } }
  }
`,
  [DeploymentParts],
);
export const PromoteDeployment = graphql(
  `
  mutation PromoteDeployment($input: PromoteDeploymentInput!) {
    promoteDeployment(input: $input) { deployment { ...DeploymentParts } }
  }
`,
  [DeploymentParts],
);
export const RollBackDeployment = graphql(
  `
  mutation RollBackDeployment($input: RollBackDeploymentInput!) {
    rollBackDeployment(input: $input) { deployment { ...DeploymentParts } }
  }
`,
  [DeploymentParts],
);
export const DeleteDeployment = graphql(
  `
  mutation DeleteDeployment($input: DeleteDeploymentInput!) {
    deleteDeployment(input: $input) { deployment { ...DeploymentParts } }
  }
`,
  [DeploymentParts],
);
export const CreateKey = graphql(`
  mutation CreateDeploymentKey($input: CreateDeploymentKeyInput!) {
    createDeploymentKey(input: $input) { secret key { id name prefix } }
  }
`);
export const RevokeKey = graphql(`
  mutation RevokeDeploymentKey($input: RevokeDeploymentKeyInput!) {
    revokeDeploymentKey(input: $input) { key { id revokedAt } }
  }
`);

type Shown = Extract<NonNullable<ResultOf<typeof DeploymentQuery>["node"]>, { replicas: unknown }>;
export type DeploymentDetail = Shown;
export type Replica = NonNullable<NonNullable<NonNullable<Shown["replicas"]["edges"]>[number]>["node"]>;
export type Load = NonNullable<Shown["load"]>;
export type Strategy = Shown["strategy"];
export type Scaling = Shown["scaling"];
export type Revision = ResultOf<typeof RevisionParts>;
export type Variant = ResultOf<typeof VariantsQuery>["modelVariants"][number];

/** The order of the parts of a field in a row of fields, so that the inputs are in line. */
export const inLine: ("label" | "input" | "description" | "error")[] = ["label", "input", "description", "error"];

/** Formats milliseconds of a measurement: 8.2 ms, 140 ms, 1.4 s; a dash if it is unknown. */
export function measured(ms: number | null | undefined): string {
  if (ms === null || ms === undefined) return "–";
  if (ms >= 1000) return `${trim((ms / 1000).toFixed(1))} s`;
  return `${ms < 10 ? trim(ms.toFixed(1)) : Math.round(ms)} ms`;
}

/** Formats a rate: 0, 0.4, 12.3, 310. */
export const rate = (n: number) => (n >= 100 ? String(Math.round(n)) : trim(n.toFixed(1)));

export const percent = (share: number) => `${trim((share * 100).toFixed(1))} %`;
