import { useEffect, useRef } from "react";

export interface SessionChange {
  id: string;
  name: string;
  status: string;
}

const listeners = new Set<(change: SessionChange) => void>();

/** Told by the frame of the page, which holds the one subscription to all sessions. */
export function tell(change: SessionChange) {
  for (const listener of listeners) listener(change);
}

/** Hears of every change of a session in sight, whichever page is shown. */
export function useSessionChanges(hear: (change: SessionChange) => void) {
  const latest = useRef(hear);
  latest.current = hear;
  useEffect(() => {
    const listener = (change: SessionChange) => latest.current(change);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
}
