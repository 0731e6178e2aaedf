import { graphql, type ResultOf } from "../../../api/graphql";
import { words } from "../../../words";

export const AgentFields = graphql(`
  fragment AgentFields on Agent {
    id name status schedulable cordonReason drainDeadline drainAction drained sessionsLeft
    version address lastSeenAt capacity occupied resourceGroup { id name } probes { name ok detail }
    conditions { type status reason since }
    plugins { name version state message restarts checks { name level text } }
  }
`);
export type AgentRow = ResultOf<typeof AgentFields>;

export const UpdateAgent = graphql(
  `
  mutation UpdateAgent($input: UpdateAgentInput!) { updateAgent(input: $input) { agent { ...AgentFields } } }
`,
  [AgentFields],
);

/** What happens to the sessions that still run at the deadline of a drain. */
export const drainActions = [
  {
    value: "RESCHEDULE",
    label: words.DrainAction.RESCHEDULE,
    help: "The sessions are pending until another agent has capacity. Data in their containers is lost.",
  },
  { value: "TERMINATE", label: words.DrainAction.TERMINATE, help: "The sessions are stopped." },
] as const;
