import { useEffect, useRef } from "react";

/**
 * Returns the focus to the previous element when the component unmounts, for dialogs that are mounted only while open.
 */
export function useFocusBack() {
  const before = useRef(document.activeElement);
  const mounted = useRef(false);
  useEffect(() => {
    mounted.current = true;
    return () => {
      mounted.current = false;
      // Wait until the focus trap of the dialog has ended.
      setTimeout(() => {
        const at = before.current;
        const lost = document.activeElement === null || document.activeElement === document.body;
        if (!mounted.current && lost && at instanceof HTMLElement && at.isConnected) at.focus();
      });
    };
  }, []);
}
