export interface Link {
  a: string;
  b: string;
  type: string;
  distance: number;
  gbps: number;
  p2p: boolean;
}

/** People's words for the kinds of links, and signs short enough for a table. */
export const linkNames: Record<string, string> = {
  nvlink: "NVLink", xgmi: "xGMI", pcie: "PCIe", nic: "Network", noc: "On chip", same_board: "Same board", unknown: "Unknown",
};
export const linkSigns: Record<string, string> = { nvlink: "NV", xgmi: "xG", pcie: "PC", nic: "NW", noc: "OC", same_board: "SB", unknown: "?" };

export interface Matrix {
  /** Rows and columns, as the agent names them. */
  names: string[];
  /** The nearest link of two, or undefined. */
  between: (a: string, b: string) => Link | undefined;
  kinds: string[];
}

/** Joins without ambiguity, whichever comes first. */
const key = (a: string, b: string) => (a < b ? `${a} ${b}` : `${b} ${a}`);

/** How the given devices reach each other; those that no link names are left out. */
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
