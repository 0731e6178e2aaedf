import { slotName } from "../../../slots";
import { amount, bytes, isMemory, parseBytes, trim } from "../../format";

/** The type of a limit, which decides how it is typed and shown. */
export type Kind = "count" | "seconds" | "bytes";

const gib = 1024 ** 3;
const day = 86_400;
const units: [string, number][] = [
  ["d", day],
  ["h", 3600],
  ["min", 60],
  ["s", 1],
];

/** Reads a size. A number without a unit is in GiB, because no limit is a few bytes. */
export function parseSize(text: string): number | null {
  const plain = /^\s*\d+(\.\d+)?\s*$/.test(text);
  const n = parseBytes(plain ? `${text.trim()}g` : text);
  return n !== null && Number.isSafeInteger(n) ? n : null;
}

/** Returns the shortest text that parseSize reads as the same size. */
export function printSize(n: number): string {
  if (n === 0) return "0";
  for (const [unit, size] of [
    ["TiB", 1024 ** 4],
    ["GiB", gib],
    ["MiB", 1024 ** 2],
    ["KiB", 1024],
  ] as const) {
    if (n % size === 0) return `${n / size} ${unit}`;
  }
  return `${n} B`;
}

/** Reads a time such as 12h, 1d 6h, 30 min or 45s, in seconds. The unit is required, except for 0. */
export function parseTime(text: string): number | null {
  const plain = text.trim().toLowerCase();
  if (plain === "0") return 0;
  if (!/^(\d+(\.\d+)?\s*(d|days?|h|hours?|m|min|minutes?|s|seconds?)\s*)+$/.test(plain)) return null;
  let sum = 0;
  for (const [, n, unit] of plain.matchAll(/(\d+(?:\.\d+)?)\s*([a-z]+)/g))
    sum += Number(n) * units.find(([u]) => u[0] === unit![0])![1];
  return Math.round(sum);
}

/** Formats seconds with all units, such as 1 d 6 h. */
export function printTime(seconds: number): string {
  let rest = seconds;
  const parts: string[] = [];
  for (const [unit, size] of units) {
    const n = Math.floor(rest / size);
    rest -= n * size;
    if (n > 0) parts.push(`${n} ${unit}`);
  }
  return parts.join(" ") || "0 s";
}

const maxCount = 2 ** 31 - 1;

export function parseCount(text: string): number | null {
  const n = Number(text.trim());
  return /^\s*\d+\s*$/.test(text) && n <= maxCount ? n : null;
}

export const parse: Record<Kind, (text: string) => number | null> = {
  count: parseCount,
  seconds: parseTime,
  bytes: parseSize,
};
export const print: Record<Kind, (n: number) => string> = { count: String, seconds: printTime, bytes: printSize };

/** The error message for a text that cannot be parsed. */
export const hints: Record<Kind, string> = {
  count: "Enter a whole number, or leave empty.",
  seconds: "Enter a time such as 12h, 30min or 2d, or leave empty.",
  bytes: "Enter a size such as 100 GiB, or leave empty.",
};

/** Returns the exact decimal of a slot; null if the text is not a number. */
export function parseSlot(slot: string, text: string): string | null {
  if (isMemory(slot)) {
    const n = parseSize(text);
    return n === null ? null : String(n);
  }
  const plain = text.trim();
  return /^\d{1,15}(\.\d{1,6})?$/.test(plain) ? trim(plain) : null;
}

export const printSlot = (slot: string, decimal: string) =>
  isMemory(slot) ? printSize(Number(decimal)) : trim(decimal);

/** The form state of an amount per slot; empty for none. */
export type SlotTexts = Record<string, string>;

export const textsOf = (slots: Record<string, string>): SlotTexts =>
  Object.fromEntries(Object.entries(slots).map(([slot, n]) => [slot, printSlot(slot, n)]));

/** Parses the amounts of slots, and returns an error per slot that cannot be parsed. */
export function readSlots(texts: SlotTexts): { slots: Record<string, string>; wrong: Record<string, string> } {
  const slots: Record<string, string> = {};
  const wrong: Record<string, string> = {};
  for (const [slot, text] of Object.entries(texts)) {
    if (!text.trim()) continue;
    const n = parseSlot(slot, text);
    if (n !== null) slots[slot] = n;
    else wrong[slot] = isMemory(slot) ? hints.bytes : "Enter a number, or leave empty.";
  }
  return { slots, wrong };
}

/** Formats a limit of effectiveLimits. */
export function formatLimit(what: string, decimal: string): string {
  if (Number(decimal) === 0) return "0"; // 0 needs no unit
  if (what === "scope bytes" || what === "disk bytes") return bytes(Number(decimal));
  if (what === "session lifetime" || what === "idle timeout") return printTime(Number(decimal));
  return amount(what.replace(/^pending /, ""), decimal);
}

const plain: Record<string, string> = {
  sessions: "Concurrent sessions",
  "pending sessions": "Pending sessions",
  "containers per session": "Containers per session",
  priority: "Highest priority",
  "session lifetime": "Session lifetime",
  "idle timeout": "Idle timeout",
  "disk bytes": "Disk per container",
  folders: "Folders",
  "scope bytes": "Storage of the largest folder owner",
  logins: "Concurrent logins",
  deployments: "Deployments",
};

/** Returns the name of a limit of effectiveLimits as a phrase to translate. */
export function limitName(what: string): [key: string, values?: Record<string, string>] {
  if (plain[what]) return [plain[what]];
  return what.startsWith("pending ")
    ? ["{{slot}}, pending sessions", { slot: slotName(what.slice("pending ".length)) }]
    : [slotName(what)];
}

/** Limits that apply to each session or login by itself, so they have no usage. */
export const perObject = new Set(["containers per session", "priority", "session lifetime", "idle timeout"]);
