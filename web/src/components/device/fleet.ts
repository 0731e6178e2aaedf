/** The fields of a device that decide where and how it is drawn. */
export interface Member {
  id: string;
  deviceId: string;
  plugin: string;
  vendor: string;
  pciAddress: string;
  capacity: Record<string, string>;
  health: string;
  healthMessage: string;
  allocatable: boolean;
  rejectReasons: string[];
  parent: { id: string } | null;
}

/** A device that is drawn separately, with its partitions. */
export interface Unit<D> {
  device: D;
  partitions: D[];
}

/** The devices of one vendor on one agent. */
export interface Family<D> {
  key: string;
  plugin: string;
  vendor: string;
  /** The slots that these devices provide. */
  slots: string[];
  units: Unit<D>[];
}

export const pools = ["cpu", "mem"];

const inOrder = (a: Member, b: Member) =>
  (a.pciAddress && b.pciAddress ? compare(a.pciAddress, b.pciAddress) : 0) ||
  a.deviceId.localeCompare(b.deviceId, undefined, { numeric: true });
const compare = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

export const accelerators = <D extends Member>(devices: readonly D[]) =>
  devices.filter((d) => !pools.some((p) => p in d.capacity)).sort(inOrder);

/** Groups accelerators by vendor, and partitions by their parent device. */
export function families<D extends Member>(devices: readonly D[]): Family<D>[] {
  const cells = accelerators(devices);
  const known = new Set(cells.map((d) => d.id));
  const found = new Map<string, Family<D>>();
  for (const device of cells) {
    const key = `${device.plugin} ${device.vendor}`;
    const family = found.get(key) ?? { key, plugin: device.plugin, vendor: device.vendor, slots: [], units: [] };
    found.set(key, family);
    for (const slot of Object.keys(device.capacity)) if (!family.slots.includes(slot)) family.slots.push(slot);
    if (device.parent && known.has(device.parent.id)) continue;
    family.units.push({ device, partitions: cells.filter((d) => d.parent?.id === device.id) });
  }
  return [...found.values()].sort(
    (a, b) => compare(a.vendor.toLowerCase(), b.vendor.toLowerCase()) || compare(a.key, b.key),
  );
}

/** Returns the devices that can be allocated: the partitions of a device if only they can be allocated. */
export const allocatableDevices = <D extends Member>(family: Family<D>): D[] =>
  family.units.flatMap((u) =>
    u.partitions.length > 0 && !u.device.allocatable ? u.partitions : [u.device, ...u.partitions],
  );

export type DeviceState = "HEALTHY" | "DEGRADED" | "UNHEALTHY" | "LOST" | "UNKNOWN" | "rejected" | "cut";

/** Returns the state of a device: its health, or, for a healthy device, that it cannot be allocated. */
export function stateOf(device: Member, cut = false): DeviceState {
  if (device.health === "UNHEALTHY" || device.health === "LOST") return device.health;
  if (!device.allocatable) return cut ? "cut" : "rejected";
  return device.health as DeviceState;
}

/** Returns why a device is not healthy or cannot be allocated; empty for a healthy device that can. */
export function problemText(device: Member): string {
  const messages = [
    device.health === "HEALTHY" ? "" : device.healthMessage,
    ...(device.allocatable ? [] : device.rejectReasons),
  ];
  return [...new Set(messages.filter(Boolean))].join("; ");
}

export interface Problem<D> {
  state: DeviceState;
  text: string;
  devices: D[];
}

const worst: DeviceState[] = ["LOST", "UNHEALTHY", "DEGRADED", "rejected"];

/** Returns the problems of a family, the worst first. Devices with the same problem share an entry. */
export function problems<D extends Member>(family: Family<D>): Problem<D>[] {
  const found = new Map<string, Problem<D>>();
  for (const { device, partitions } of family.units) {
    for (const d of [device, ...partitions]) {
      const state = stateOf(d, d === device && partitions.length > 0);
      const same = d !== device && state === stateOf(device, true) && problemText(device).includes(problemText(d));
      if (!worst.includes(state) || same) continue; // the entry of the parent device already contains this problem
      const key = `${state} ${problemText(d)}`;
      const problem = found.get(key) ?? { state, text: problemText(d), devices: [] };
      found.set(key, problem);
      problem.devices.push(d);
    }
  }
  return [...found.values()].sort((a, b) => worst.indexOf(a.state) - worst.indexOf(b.state));
}

/** Returns a short name that is unique among the neighbors of a device. */
export function shortName(deviceId: string, parent?: string): string {
  if (parent && deviceId.startsWith(`${parent}/`)) return deviceId.slice(parent.length + 1);
  const name = deviceId.slice(deviceId.indexOf(":") + 1).replace(/^0000:(?=[\da-f]{2}:[\da-f]{2}\.)/, "");
  const [whole = "", part] = name.split("/");
  const short = whole.length > 9 ? `…${whole.slice(-4)}` : whole;
  return part === undefined ? short : `${short}/${part}`;
}
