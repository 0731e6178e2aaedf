import { useEffect, useRef } from "react";

export interface SessionChange {
  id: string;
  name: string;
  status: string;
}

const listeners = new Set<(change: SessionChange) => void>();

/** Publishes a change. The frame of the page calls it, which has the only subscription to all sessions. */
export function publishSessionChange(change: SessionChange) {
  for (const listener of listeners) listener(change);
}

/** Calls a function on every change of a session that the viewer can see, on every page. */
export function useSessionChanges(onChange: (change: SessionChange) => void) {
  const latest = useRef(onChange);
  latest.current = onChange;
  useEffect(() => {
    const listener = (change: SessionChange) => latest.current(change);
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }, []);
}
