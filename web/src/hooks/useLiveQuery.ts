import { useCallback, useEffect, useRef } from "react";
import { type AnyVariables, type UseQueryArgs, useQuery } from "urql";
import { fromGraphQL } from "../api/errors";
import { useGeneration } from "../api/live";

/**
 * Runs a query whose result stays up to date: pushed changes update the cache, and a reconnection, during which pushes
 * can be lost, refetches it.
 */
export function useLiveQuery<Data, Variables extends AnyVariables>(args: UseQueryArgs<Variables, Data>) {
  const [result, execute] = useQuery<Data, Variables>(args);
  const generation = useGeneration();
  const read = useRef(generation);
  const refetch = useCallback(() => execute({ requestPolicy: "network-only" }), [execute]);
  useEffect(() => {
    if (read.current === generation) return;
    read.current = generation;
    refetch();
  }, [generation, refetch]);
  return {
    data: result.data,
    failure: result.error ? fromGraphQL(result.error) : null,
    fetching: result.fetching,
    refetch,
  };
}
