import { useEffect, useRef } from "react";

/** Calls at most once in `ms`, also when asked more often; the last call is never lost. */
export function useGathered(call: () => void, ms: number) {
  const latest = useRef(call);
  latest.current = call;
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  return useRef(() => {
    if (timer.current) return;
    timer.current = setTimeout(() => {
      timer.current = undefined;
      latest.current();
    }, ms);
  }).current;
}
