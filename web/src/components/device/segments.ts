export interface Holder {
  slot: string;
  amount: string;
  since: string;
  mine: boolean;
  session: { id: string; name: string } | null;
}

export interface DeviceShare {
  capacity: Record<string, string>;
  holders: Holder[];
}

export interface Segment {
  key: string;
  /** Part of the device, 0 to 1. */
  part: number;
  /** Where it begins, from 0. */
  start: number;
  kind: "mine" | "known" | "hidden";
  session: { id: string; name: string } | null;
  /** Amount per slot, as sent. */
  amounts: Record<string, string>;
}

/**
 * The parts of a device that are held, oldest first. A device may count the
 * same hardware in several slots (shares and memory): a holder then takes the
 * largest of its parts, not their sum.
 */
export function segments(device: DeviceShare): Segment[] {
  const groups = new Map<string, Holder[]>();
  for (const holder of device.holders) {
    // Others' sessions are not named; what began at the same instant is one.
    const key = holder.session?.id ?? `hidden ${holder.since}`;
    groups.set(key, [...(groups.get(key) ?? []), holder]);
  }
  const oldest = [...groups].sort(([, a], [, b]) => a[0]!.since.localeCompare(b[0]!.since));
  let start = 0;
  return oldest.map(([key, holders]) => {
    const sums: Record<string, number> = {};
    for (const h of holders) sums[h.slot] = (sums[h.slot] ?? 0) + Number(h.amount);
    const parts = Object.entries(sums).map(([slot, sum]) => {
      const whole = Number(device.capacity[slot] ?? 0);
      return whole > 0 ? sum / whole : 0;
    });
    const part = Math.min(Math.max(0, ...parts), 1 - start);
    const first = holders[0]!;
    const segment: Segment = {
      key,
      part,
      start,
      kind: first.mine ? "mine" : first.session ? "known" : "hidden",
      session: first.session,
      amounts: Object.fromEntries(Object.entries(sums).map(([slot, sum]) => [slot, String(round(sum))])),
    };
    start += part;
    return segment;
  });
}

export const round = (n: number) => Math.round(n * 1000) / 1000;

export const held = (parts: readonly Segment[]) => round(parts.reduce((sum, s) => sum + s.part, 0));

/** The slot that a device is best described by: shares before pieces before bytes. */
export function mainSlot(capacity: Record<string, string>): string {
  const slots = Object.keys(capacity).sort();
  return slots.find((s) => s.endsWith(".shares")) ?? slots.find((s) => !s.endsWith(".mem")) ?? slots[0] ?? "";
}
