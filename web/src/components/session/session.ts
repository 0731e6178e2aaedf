import { type FragmentOf, graphql } from "../../api/graphql";
import { IdleParts } from "./Idle";
import { PendingParts } from "./pending/report";

const SessionParts = graphql(
  `
  fragment SessionParts on Session {
    id version name type status result exitCode priority slots command environment terminationReason statusMessage
    tags replaced arrayIndex array { id name } restartOf { id name status } restarts { id name status }
    createdAt scheduledAt startedAt terminatedAt deadlineAt
    startsAt diskBytes lifetime endsAt preemptible strictAgents agents { id name }
    sessionGroup { id name placement strict }
    dependsOn { id name satisfied needed { id } }
    owner { id email } project { id name } resourceGroup { id name } image { id name reference digest }
    mounts { id target subpath readOnly revokedAt vfolder { id name } }
    kernels {
      id role index hostname status statusMessage exitCode
      agent { id name cordonReason drainDeadline drainAction }
      allocations { id slot amount freedAt device { id deviceId model } }
      variables gpuDirect { feature available reason }
    }
    history { id at phase fromStatus toStatus result attempt code message steps { name startedAt endedAt ok message } }
    pending { ...PendingParts }
    permissions
    ...IdleParts
    usage { slot slotSeconds }
  }
`,
  [IdleParts, PendingParts],
);

export const SessionQuery = graphql(`query Session($id: ID!) { node(id: $id) { ...SessionParts } }`, [SessionParts]);

export const SessionChanged = graphql(
  `subscription SessionChanged($id: ID!) { sessionChanged(id: $id) { ...SessionParts } }`,
  [SessionParts],
);

export const RenameSession = graphql(`
  mutation RenameSession($input: RenameSessionInput!) {
    renameSession(input: $input) { session { id version name } }
  }
`);

/** A session with the fields that its page shows. */
export type SessionDetail = FragmentOf<typeof SessionParts>;
