import { useCallback, useEffect, useLayoutEffect, useRef, useState } from "react";

/** Rows drawn above and below what is seen, so that quick scrolling meets no gaps. */
const margin = 20;

/** Which of many rows of one height are drawn: from first on, before last. */
export function drawn(count: number, height: number, top: number, room: number): { first: number; last: number } {
  const first = Math.max(0, Math.min(count, Math.floor(top / height)) - margin);
  return { first, last: Math.max(first, Math.min(count, Math.ceil((top + room) / height) + margin)) };
}

/**
 * Draws of a long list only the rows that are seen, so that 100,000 scroll as
 * ten do. The box scrolls; `near` is called when its end comes into sight.
 */
export function useWindow(count: number, height: number, near?: () => void) {
  const box = useRef<HTMLDivElement>(null);
  const [at, setAt] = useState({ top: 0, room: 1000 });
  const look = useCallback(() => {
    const el = box.current;
    if (!el) return;
    // By whole rows: fewer paintings than there are pixels.
    const top = Math.floor(el.scrollTop / height) * height;
    const room = el.clientHeight;
    setAt((old) => (old.top === top && old.room === room ? old : { top, room }));
  }, [height]);
  useLayoutEffect(look, [look, count]);
  useEffect(() => {
    const el = box.current;
    if (!el) return;
    const sized = new ResizeObserver(look);
    sized.observe(el);
    return () => sized.disconnect();
  }, [look]);

  const { first, last } = drawn(count, height, at.top, at.room);
  const end = last === count;
  const tell = useRef(near);
  tell.current = near;
  useEffect(() => {
    if (end) tell.current?.();
  }, [end, count]);

  /** Scrolls so far that the row is seen, below a head of one row. */
  const show = useCallback(
    (i: number) => {
      const el = box.current;
      if (!el) return;
      const from = i * height;
      if (from < el.scrollTop) el.scrollTop = from;
      else if (from + 2 * height > el.scrollTop + el.clientHeight) el.scrollTop = from + 2 * height - el.clientHeight;
      look();
    },
    [height, look],
  );
  return { box, first, last, before: first * height, after: (count - last) * height, onScroll: look, show };
}
