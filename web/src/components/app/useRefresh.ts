import { useDocumentVisibility } from "@mantine/hooks";
import { useEffect, useRef, useState } from "react";

/** Milliseconds between two refreshes while something starts. */
const interval = 3000;

/** The number of refreshes after an app was opened that has not started yet. */
const refreshesAfterOpen = 5;

/**
 * Refreshes while something starts, and when the user comes back to the page, but not while the page is hidden. The
 * returned function must be called after something was opened that will start soon.
 */
export function useRefresh(read: () => void, starting: boolean): () => void {
  const visible = useDocumentVisibility() === "visible";
  const [ahead, setAhead] = useState(0);
  const before = useRef(visible);
  useEffect(() => {
    if (visible && !before.current) read();
    before.current = visible;
  }, [visible, read]);
  const active = visible && (starting || ahead > 0);
  useEffect(() => {
    if (!active) return;
    const timer = setInterval(() => {
      setAhead((n) => Math.max(0, n - 1));
      read();
    }, interval);
    return () => clearInterval(timer);
  }, [active, read]);
  return () => setAhead(refreshesAfterOpen);
}
