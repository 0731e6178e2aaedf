import { useEffect, useState } from "react";

/** Returns the current time and updates it while `running`, for elapsed times. */
export function useNow(running = true, ms = 1000): number {
  const [now, setNow] = useState(Date.now);
  useEffect(() => {
    if (!running) return;
    const timer = setInterval(() => setNow(Date.now()), ms);
    return () => clearInterval(timer);
  }, [running, ms]);
  return now;
}
