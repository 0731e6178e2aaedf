import { useDocumentVisibility } from "@mantine/hooks";
import { useEffect, useRef, useState } from "react";

/** Between two reads while something starts. */
const pause = 3000;

/** As many reads follow the opening of an app that has not started yet. */
const follow = 5;

/**
 * Reads again while something starts, and when someone comes back to the page. A hidden page
 * reads nothing. Call the returned function when something was opened that will start soon.
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
    }, pause);
    return () => clearInterval(timer);
  }, [active, read]);
  return () => setAhead(follow);
}
