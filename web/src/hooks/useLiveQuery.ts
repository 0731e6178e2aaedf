import { useCallback, useEffect, useRef } from "react";
import { type AnyVariables, type UseQueryArgs, useQuery } from "urql";
import { fromGraphQL } from "../api/errors";
import { useGeneration } from "../api/live";

/**
 * A query that stays true: pushed changes patch what it read, and after a
 * reconnection, when pushes may have been missed, it reads again.
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
