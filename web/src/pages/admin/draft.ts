import { isMemory, parseBytes } from "../../components/format";

/** A policy as it is typed: every limit a text, empty for none. */
export interface Draft {
  name: string;
  totalSlots: string;
  maxSessions: string;
  maxPendingSessions: string;
  maxVfolders: string;
  maxScopeBytes: string;
}

export interface Limits {
  totalSlots: Record<string, string>;
  maxSessions: number | null;
  maxPendingSessions: number | null;
  maxVfolders: number | null;
  maxScopeBytes: number | null;
}

const counts = ["maxSessions", "maxPendingSessions", "maxVfolders"] as const;

const size = (n: number) => {
  for (const [unit, bytes] of [["g", 1024 ** 3], ["m", 1024 ** 2]] as const) if (n > 0 && n % bytes === 0) return `${n / bytes}${unit}`;
  return String(n);
};

export function draftOf(policy: (Limits & { name: string }) | null): Draft {
  const text = (n: number | null | undefined) => (n === null || n === undefined ? "" : String(n));
  return {
    name: policy?.name ?? "",
    totalSlots: Object.entries(policy?.totalSlots ?? {})
      .map(([slot, n]) => `${slot}=${isMemory(slot) ? size(Number(n)) : n}`)
      .join(" "),
    maxSessions: text(policy?.maxSessions),
    maxPendingSessions: text(policy?.maxPendingSessions),
    maxVfolders: text(policy?.maxVfolders),
    maxScopeBytes: policy?.maxScopeBytes == null ? "" : size(policy.maxScopeBytes),
  };
}

/** Reads what was typed; names the fields that cannot be read. */
export function parseDraft(draft: Draft): { limits: Limits; wrong: Partial<Record<keyof Draft, string>> } {
  const wrong: Partial<Record<keyof Draft, string>> = {};
  const limits: Limits = { totalSlots: {}, maxSessions: null, maxPendingSessions: null, maxVfolders: null, maxScopeBytes: null };
  for (const pair of draft.totalSlots.split(/[\s,]+/).filter(Boolean)) {
    const [slot, value, ...more] = pair.split("=");
    const amount = value === undefined ? null : isMemory(slot!) ? parseBytes(value) : /^\d+(\.\d+)?$/.test(value) ? value : null;
    if (!slot || amount === null || more.length > 0) wrong.totalSlots = "Write slot=amount, with spaces between.";
    else limits.totalSlots[slot] = String(amount);
  }
  for (const key of counts) {
    const text = draft[key].trim();
    if (/^\d+$/.test(text)) limits[key] = Number(text);
    else if (text) wrong[key] = "A whole number, or nothing.";
  }
  const storage = draft.maxScopeBytes.trim();
  limits.maxScopeBytes = storage ? parseBytes(storage) : null;
  if (storage && limits.maxScopeBytes === null) wrong.maxScopeBytes = "A size such as 100g, or nothing.";
  return { limits, wrong };
}
