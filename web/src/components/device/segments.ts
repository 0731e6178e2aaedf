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
  /** The fraction of the device, 0 to 1. */
  part: number;
  /** The offset of the segment, 0 to 1. */
  start: number;
  kind: "mine" | "known" | "hidden";
  session: { id: string; name: string } | null;
  /** Amounts per slot, as the server sends them. */
  amounts: Record<string, string>;
}

/**
 * Returns the allocated parts of a device, oldest first. A device can offer the same hardware as several slots (shares
 * and memory). An allocation then counts with its largest fraction, not with their sum.
 */
export function segments(device: DeviceShare): Segment[] {
  const groups = new Map<string, Holder[]>();
  for (const holder of device.holders) {
    // Sessions of other users have no name, so their allocations are grouped by start time.
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

/** Returns the main slot of a device: shares before whole devices before bytes. */
export function mainSlot(capacity: Record<string, string>): string {
  const slots = Object.keys(capacity).sort();
  return slots.find((s) => s.endsWith(".shares")) ?? slots.find((s) => !s.endsWith(".mem")) ?? slots[0] ?? "";
}
