import { useCallback, useState } from "react";
import type { Failure } from "../api/errors";

/** Converts anything that was thrown to a Failure. */
export const asFailure = (error: unknown): Failure =>
  typeof error === "object" && error !== null && "code" in error && "message" in error
    ? (error as Failure)
    : { code: "UNAVAILABLE", message: error instanceof Error ? error.message : String(error) };

/** Runs an async function for a button or a form, with its busy state and its failure. Returns null after a failure. */
export function useCall<Args extends unknown[], Data>(call: (...args: Args) => Promise<Data>) {
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const run = useCallback(
    async (...args: Args): Promise<Data | null> => {
      setFailure(null);
      setBusy(true);
      try {
        return await call(...args);
      } catch (error) {
        setFailure(asFailure(error));
        return null;
      } finally {
        setBusy(false);
      }
    },
    [call],
  );
  return { run, busy, failure, clear: () => setFailure(null) };
}
