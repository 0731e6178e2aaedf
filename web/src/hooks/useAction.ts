import { useCallback, useState } from "react";
import { type AnyVariables, type DocumentInput, useMutation } from "urql";
import { type Failure, fromGraphQL } from "../api/errors";
import { toast } from "./useToasts";

/**
 * Runs one mutation for a button or a form. Forms show the failure themselves; with `toastFailure`, it is shown as a toast.
 */
export function useAction<Data, Variables extends AnyVariables>(
  document: DocumentInput<Data, Variables>,
  toastFailure = false,
) {
  const [{ fetching }, execute] = useMutation<Data, Variables>(document);
  const [failure, setFailure] = useState<Failure | null>(null);
  const run = useCallback(
    async (variables: Variables): Promise<Data | null> => {
      setFailure(null);
      const result = await execute(variables);
      if (!result.error) return result.data ?? null;
      const reason = fromGraphQL(result.error);
      setFailure(reason);
      if (toastFailure) toast({ failure: reason });
      return null;
    },
    [execute, toastFailure],
  );
  return { run, busy: fetching, failure, clear: () => setFailure(null) };
}
