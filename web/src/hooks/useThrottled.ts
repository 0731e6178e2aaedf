import { useEffect, useRef, useState } from "react";

/** Follows a value, but repaints at most once in `ms`. The last value always arrives. */
export function useThrottled<T>(value: T, ms: number): T {
  const [shown, setShown] = useState(value);
  const at = useRef(0);
  useEffect(() => {
    const wait = Math.max(0, at.current + ms - Date.now());
    const timer = setTimeout(() => {
      at.current = Date.now();
      setShown(value);
    }, wait);
    return () => clearTimeout(timer);
  }, [value, ms]);
  return shown;
}
