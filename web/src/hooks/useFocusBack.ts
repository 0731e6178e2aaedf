import { useEffect, useRef } from "react";

/** When what uses it goes away, whatever had the focus before has it again: for dialogs that are there only while open. */
export function useFocusBack() {
  const before = useRef(document.activeElement);
  const here = useRef(false);
  useEffect(() => {
    here.current = true;
    return () => {
      here.current = false;
      // After the dialog's own trap has let go.
      setTimeout(() => {
        const at = before.current;
        const lost = document.activeElement === null || document.activeElement === document.body;
        if (!here.current && lost && at instanceof HTMLElement && at.isConnected) at.focus();
      });
    };
  }, []);
}
