import { useEffect, useRef } from "react";

export type Keys = Record<string, (event: KeyboardEvent) => void>;

const typing = (target: EventTarget | null) =>
  target instanceof HTMLElement && (target.isContentEditable || /^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName));

/** How a key press is written in a Keys table: "mod+k", "/", "g s" for two in a row. */
export function nameOf(event: Pick<KeyboardEvent, "key" | "ctrlKey" | "metaKey" | "altKey">): string {
  const key = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (event.altKey) return `alt+${key}`;
  return event.ctrlKey || event.metaKey ? `mod+${key}` : key;
}

/** Two keys in a row count within this time. */
const pause = 900;

/** Runs actions on keys, except while someone types or a dialog is open. */
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
      const chord = Date.now() - before.at < pause ? `${before.name} ${name}` : "";
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
