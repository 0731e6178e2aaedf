export interface Link {
  a: string;
  b: string;
  type: string;
  distance: number;
  gbps: number;
  p2p: boolean;
}

/** Names of the kinds of links, and abbreviations for table cells. */
export const linkNames: Record<string, string> = {
  NVLINK: "NVLink",
  XGMI: "xGMI",
  PCIE: "PCIe",
  NIC: "Network",
  NOC: "On chip",
  SAME_BOARD: "Same board",
  UNKNOWN: "Unknown",
};
export const linkSigns: Record<string, string> = {
  NVLINK: "NV",
  XGMI: "xG",
  PCIE: "PC",
  NIC: "NW",
  NOC: "OC",
  SAME_BOARD: "SB",
  UNKNOWN: "?",
};

export interface Matrix {
  /** The rows and columns of the matrix: device IDs of the agent. */
  names: string[];
  /** Returns the shortest link between two devices, or undefined. */
  between: (a: string, b: string) => Link | undefined;
  kinds: string[];
}

/** Returns the same key for both directions of a pair. */
const key = (a: string, b: string) => (a < b ? `${a} ${b}` : `${b} ${a}`);

/** Returns the links between the given devices. Devices without a link are left out. */
export function matrix(order: readonly string[], links: readonly Link[]): Matrix {
  const known = new Set(order);
  const nearest = new Map<string, Link>();
  const linked = new Set<string>();
  for (const link of links) {
    if (link.a === link.b || !known.has(link.a) || !known.has(link.b)) continue;
    linked.add(link.a).add(link.b);
    const old = nearest.get(key(link.a, link.b));
    if (!old || link.distance < old.distance) nearest.set(key(link.a, link.b), link);
  }
  return {
    names: order.filter((name) => linked.has(name)),
    between: (a, b) => nearest.get(key(a, b)),
    kinds: [...new Set([...nearest.values()].map((l) => l.type))].sort(),
  };
}

/** Returns the parent device of each partition, by device ID. */
export function parents(
  devices: readonly { id: string; deviceId: string; parent: { id: string } | null }[],
): ReadonlyMap<string, string> {
  const names = new Map(devices.map((d) => [d.id, d.deviceId]));
  return new Map(
    devices.flatMap((d): [string, string][] => {
      const whole = d.parent ? names.get(d.parent.id) : undefined;
      return whole ? [[d.deviceId, whole]] : [];
    }),
  );
}

/** Replaces partitions in links by their parent devices. */
export const toParents = (links: readonly Link[], whole: ReadonlyMap<string, string>): Link[] =>
  links.map((l) => ({ ...l, a: whole.get(l.a) ?? l.a, b: whole.get(l.b) ?? l.b }));
