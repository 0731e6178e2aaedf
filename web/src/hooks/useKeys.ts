import { useEffect, useRef } from "react";

export type Keys = Record<string, (event: KeyboardEvent) => void>;

const typing = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/** Returns the name of a key press in a Keys table, such as "mod+k" or "/". "g s" means two keys in a row. */
export function nameOf(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey">): string {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (event.altKey) return `alt+${key}`;
  return event.ctrlKey || event.metaKey ? `mod+${key}` : key;
}

/** The longest time between two keys in a row, in milliseconds. */
const maxPause = 900;

/** Runs actions on key presses, except while the user types or a dialog is open. */
export function useKeys(keys: Keys) {
  const table = useRef(keys);
  table.current = keys;
  useEffect(() => {
    let before = { name: "", at: 0 };
    function press(event: KeyboardEvent) {
      const name = nameOf(event);
      const always = name.startsWith("mod+");
      if (!always && (typing(event.target) || document.querySelector('[aria-modal="true"], .xterm:focus-within')))
        return;
      const chord = Date.now() - before.at < maxPause ? `${before.name} ${name}` : "";
      const action = table.current[chord] ?? table.current[name];
      before = { name, at: Date.now() };
      if (!action) return;
      event.preventDefault();
      action(event);
    }
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, []);
}
