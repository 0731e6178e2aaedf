export interface FitDevice {
  allocatable: boolean;
  health: string;
  capacity: Record<string, string>;
  occupied: Record<string, string>;
}

export interface FitAgent {
  status: string;
  schedulable: boolean;
  devices: FitDevice[];
}

/** What stands in the way of a request on one agent; null when it fits. */
type Obstacle = { slot: string; reason: "none" | "total" | "contiguity" } | null;

const usable = (d: FitDevice) => d.allocatable && d.health !== "unhealthy" && d.health !== "lost";

/** Names of a device's one amount: what is taken under one is gone under the others. */
type Unified = ReadonlySet<string>;

function free(d: FitDevice, slot: string, unified: Unified) {
  const all = Number(d.capacity[slot] ?? 0);
  const names = unified.has(slot) ? Object.keys(d.capacity).filter((s) => unified.has(s)) : [slot];
  return names.reduce((left, s) => left - (Number(d.occupied[s] ?? 0) / (Number(d.capacity[s]) || 1)) * all, all);
}

function obstacle(agent: FitAgent, slots: Record<string, string>, unified: Unified): Obstacle {
  for (const [slot, text] of Object.entries(slots)) {
    const wanted = Number(text);
    if (!(wanted > 0)) continue;
    const devices = agent.devices.filter((d) => usable(d) && slot in d.capacity);
    if (devices.length === 0) return { slot, reason: "none" };
    const enough = wanted * (1 - 1e-9);
    const sum = devices.reduce((all, d) => all + Math.max(0, free(d, slot, unified)), 0);
    if (sum < enough) return { slot, reason: "total" };
    // CPU and memory are one pool; a fraction must lie on one device, and whole
    // shares on devices that are free altogether.
    if (slot === "cpu" || slot === "mem" || !slot.endsWith(".shares")) continue;
    const rest = wanted % 1;
    const whole = devices.filter((d) => free(d, slot, unified) >= Math.min(1, Number(d.capacity[slot])) - 1e-9).length;
    const fits = wanted <= 1 ? devices.some((d) => free(d, slot, unified) >= enough) : whole >= Math.ceil(wanted - rest);
    if (!fits) return { slot, reason: "contiguity" };
  }
  return null;
}

export interface Fit {
  /** Agents that could take it now, and all that are open. */
  now: number;
  of: number;
  /** The commonest reason against, when none can. */
  why: Obstacle;
}

/**
 * A guess at whether a request starts at once, from what the page already
 * shows. The scheduler decides; it also knows the queue and the limits.
 */
export function fit(agents: readonly FitAgent[], slots: Record<string, string>, unified: Unified): Fit {
  const open = agents.filter((a) => a.status === "alive" && a.schedulable);
  const reasons = open.map((a) => obstacle(a, slots, unified));
  const against = reasons.filter((r) => r !== null);
  return {
    now: reasons.length - against.length,
    of: open.length,
    why: against.length === reasons.length ? (against.at(-1) ?? null) : null,
  };
}

/** The largest amount of a slot that one request could ever hold: on one agent, used or not. */
export function largest(agents: readonly FitAgent[], slot: string): number {
  const sums = agents.map((a) =>
    a.devices.filter(usable).reduce((all, d) => all + Number(d.capacity[slot] ?? 0), 0),
  );
  return Math.max(0, ...sums);
}
