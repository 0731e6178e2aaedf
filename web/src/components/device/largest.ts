interface Device {
  allocatable: boolean;
  health: string;
  capacity: Record<string, string>;
}

interface Agent {
  devices: readonly Device[];
}

const usable = (d: Device) => d.allocatable && d.health !== "UNHEALTHY" && d.health !== "LOST";

/**
 * Returns the largest amount of a slot that one request can get: the capacity of the largest agent, whether in use or
 * not.
 */
export function largest(agents: readonly Agent[], slot: string): number {
  const sums = agents.map((a) => a.devices.filter(usable).reduce((all, d) => all + Number(d.capacity[slot] ?? 0), 0));
  return Math.max(0, ...sums);
}
