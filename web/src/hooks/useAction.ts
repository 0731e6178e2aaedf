import { useCallback, useState } from "react";
import { type AnyVariables, type DocumentInput, useMutation } from "urql";
import { type Failure, fromGraphQL } from "../api/errors";
import { toast } from "./useToasts";

/**
 * Runs one mutation for a button or a form. Forms show the failure themselves; with `shout`, it is shown as a toast.
 */
export function useAction<Data, Variables extends AnyVariables>(
  document: DocumentInput<Data, Variables>,
  shout = false,
) {
  const [{ fetching }, execute] = useMutation<Data, Variables>(document);
  const [failure, setFailure] = useState<Failure | null>(null);
  const run = useCallback(
    async (variables: Variables): Promise<Data | null> => {
      setFailure(null);
      const result = await execute(variables);
      if (!result.error) return result.data ?? null;
      const why = fromGraphQL(result.error);
      setFailure(why);
      if (shout) toast({ failure: why });
      return null;
    },
    [execute, shout],
  );
  return { run, busy: fetching, failure, clear: () => setFailure(null) };
}
