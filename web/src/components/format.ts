import { language, t } from "../i18n";
import { slotName } from "../slots";

const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

export function bytes(n: number): string {
  let unit = 0;
  let value = n;
  while (Math.abs(value) >= 1024 && unit < units.length - 1) {
    value /= 1024;
    unit++;
  }
  const digits = unit === 0 || Math.abs(value) >= 100 ? 0 : Math.abs(value) >= 10 ? 1 : 2;
  return `${trim(value.toFixed(digits))} ${units[unit]}`;
}

/** 1.50 → 1.5, 2.00 → 2 */
export const trim = (decimal: string) => (decimal.includes(".") ? decimal.replace(/\.?0+$/, "") : decimal);

/** Formats milliseconds: 8 s, 3 min 20 s, 2 h 5 min, 4 d 1 h. */
export function duration(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  const parts: [number, string][] = [
    [Math.floor(s / 86400), "{{n}} d"],
    [Math.floor((s % 86400) / 3600), "{{n}} h"],
    [Math.floor((s % 3600) / 60), "{{n}} min"],
    [s % 60, "{{n}} s"],
  ];
  const first = parts.findIndex(([n]) => n > 0);
  if (first < 0) return t("{{n}} s", { n: 0 });
  return parts
    .slice(first, first + 2)
    .filter(([n]) => n > 0)
    .map(([n, unit]) => t(unit, { n }))
    .join(" ");
}

/** Formats short durations with fractions: 0.4 s, 2.31 s. */
export const brief = (ms: number) =>
  ms < 10_000 ? t("{{n}} s", { n: trim((Math.max(0, ms) / 1000).toFixed(2)) }) : duration(ms);

export const clock = (iso: string) =>
  new Date(iso).toLocaleTimeString(language(), { hour: "2-digit", minute: "2-digit", second: "2-digit" });

export function when(iso: string, now = new Date()): string {
  const at = new Date(iso);
  const day = at.toDateString() === now.toDateString();
  return at.toLocaleString(
    language(),
    day
      ? { hour: "2-digit", minute: "2-digit" }
      : { year: "numeric", month: "short", day: "numeric", hour: "2-digit", minute: "2-digit" },
  );
}

export const isMemory = (slot: string) => slot === "mem" || slot.endsWith(".mem");

export function amount(slot: string, decimal: string): string {
  if (isMemory(slot)) return bytes(Number(decimal));
  const short = trim(decimal);
  return slot.endsWith(".shares") && !short.includes(".") ? `${short}.0` : short;
}

const order = (slot: string) => (slot === "cpu" ? 0 : slot === "mem" ? 1 : 2);

export const bySlot = (a: string, b: string) => order(a) - order(b) || a.localeCompare(b);

/** "1 CPU · 1 GiB · 0.5 fGPU" */
export function slotsLine(slots: Record<string, string>): string {
  return Object.keys(slots)
    .filter((slot) => Number(slots[slot]) > 0)
    .sort(bySlot)
    .map((slot) => (slot === "mem" ? amount(slot, slots[slot]!) : `${amount(slot, slots[slot]!)} ${slotName(slot)}`))
    .join(" · ");
}

/** Formats slot-seconds as hours; memory as GiB-hours. */
export function slotHours(slot: string, slotSeconds: string): string {
  const hours = Number(slotSeconds) / 3600 / (isMemory(slot) ? 1024 ** 3 : 1);
  return hours === 0 ? "0" : hours < 0.01 ? "< 0.01" : hours.toFixed(hours < 10 ? 2 : hours < 100 ? 1 : 0);
}

/** Parses 4g, 512m, 1.5GiB or plain bytes; null for anything else. */
export function parseBytes(text: string): number | null {
  const match = /^\s*(\d+(?:\.\d+)?)\s*([kmgtp])?(?:i?b)?\s*$/i.exec(text);
  if (!match) return null;
  const power = match[2] ? "kmgtp".indexOf(match[2].toLowerCase()) + 1 : 0;
  return Math.round(Number(match[1]) * 1024 ** power);
}

/** Quotes a word for a shell if necessary. */
export const quote = (word: string) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
