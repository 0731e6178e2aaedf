import { useDebouncedCallback } from "@mantine/hooks";
import { useSubscription } from "urql";
import { graphql } from "../../api/graphql";

const DeploymentsChanged = graphql(`subscription DeploymentsChanged { deploymentChanged { id } }`);

/** Calls a function after deployments that the viewer can see have changed, at most once a second. */
export function useDeploymentsChanged(look: () => void) {
  const again = useDebouncedCallback(look, { delay: 1000, maxWait: 1000 });
  useSubscription({ query: DeploymentsChanged }, (_, change) => {
    again();
    return change;
  });
}
