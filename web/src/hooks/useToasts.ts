import { useSyncExternalStore } from "react";
import type { Failure } from "../api/errors";

export interface Toast {
  id: number;
  text?: string;
  failure?: Failure;
  /** A link to the object of the message. */
  link?: { label: string; to: string };
}

let toasts: Toast[] = [];
let last = 0;
const listeners = new Set<() => void>();

function set(next: Toast[]) {
  toasts = next;
  for (const listener of listeners) listener();
}

export function dismiss(id: number) {
  set(toasts.filter((t) => t.id !== id));
}

/** Shows a short message. Failures stay until they are closed. */
export function toast(note: Omit<Toast, "id">) {
  const id = ++last;
  set([...toasts.slice(-3), { id, ...note }]);
  if (!note.failure) setTimeout(() => dismiss(id), 8000);
}

export const useToasts = () =>
  useSyncExternalStore(
    (listener) => {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    () => toasts,
  );
