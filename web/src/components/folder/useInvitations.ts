import { useDebouncedCallback } from "@mantine/hooks";
import { useSubscription } from "urql";
import { graphql, type ResultOf } from "../../api/graphql";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { ShareFields } from "./share";

const InvitationsQuery = graphql(
  `
  query Invitations {
    vfolderShares(first: 100, mine: true, where: { status: PENDING }, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
      totalCount edges { node { ...ShareFields } }
    }
  }
`,
  [ShareFields],
);

export const SharesChanged = graphql(`subscription SharesChanged { vfolderShareChanged { ...ShareFields } }`, [
  ShareFields,
]);

export type SharesChange = ResultOf<typeof SharesChanged>;

/** Returns the viewer's open invitations to folders, and keeps them up to date. */
export function useInvitations() {
  const { data, failure, refetch } = useLiveQuery({ query: InvitationsQuery });
  const again = useDebouncedCallback(refetch, { delay: 200, maxWait: 200 });
  useSubscription({ query: SharesChanged }, (_, change) => {
    if (change.vfolderShareChanged.mine) again();
    return change;
  });
  const rows = (data?.vfolderShares.edges ?? []).flatMap((e) => (e?.node?.status === "PENDING" ? [e.node] : []));
  return { rows, failure, refetch };
}
