import { useState } from "react";

/** A small preference kept in this browser. */
export function useStored<T>(key: string, initial: T): [T, (value: T) => void] {
  const [value, setValue] = useState<T>(() => {
    try {
      const text = localStorage.getItem(`berth.${key}`);
      return text === null ? initial : (JSON.parse(text) as T);
    } catch {
      return initial;
    }
  });
  function store(next: T) {
    setValue(next);
    try {
      localStorage.setItem(`berth.${key}`, JSON.stringify(next));
    } catch {
      // A full or forbidden store only loses the preference.
    }
  }
  return [value, store];
}
