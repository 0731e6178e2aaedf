/** What of a device decides where and how it is drawn. */
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

/** A device that is drawn for itself, with what is cut from it. */
export interface Unit<D> {
  device: D;
  partitions: D[];
}

/** The devices of one vendor on one agent. */
export interface Family<D> {
  key: string;
  plugin: string;
  vendor: string;
  /** Slots that they are given away in. */
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

/** Accelerators by vendor, partitions within what they are cut from. */
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

/** Those that are given away: a device that is cut is so in its parts. */
export const leaves = <D extends Member>(family: Family<D>): D[] =>
  family.units.flatMap((u) =>
    u.partitions.length > 0 && !u.device.allocatable ? u.partitions : [u.device, ...u.partitions],
  );

export type Standing = "HEALTHY" | "DEGRADED" | "UNHEALTHY" | "LOST" | "UNKNOWN" | "rejected" | "cut";

/** How a device stands: its health, or that it is not given away though nothing ails it. */
export function standing(device: Member, cut = false): Standing {
  if (device.health === "UNHEALTHY" || device.health === "LOST") return device.health;
  if (!device.allocatable) return cut ? "cut" : "rejected";
  return device.health as Standing;
}

/** Why a device is not well or not given away; empty for one that is both. */
export function why(device: Member): string {
  const said = [
    device.health === "HEALTHY" ? "" : device.healthMessage,
    ...(device.allocatable ? [] : device.rejectReasons),
  ];
  return [...new Set(said.filter(Boolean))].join("; ");
}

export interface Trouble<D> {
  standing: Standing;
  why: string;
  devices: D[];
}

const worst: Standing[] = ["LOST", "UNHEALTHY", "DEGRADED", "rejected"];

/** What is wrong in a family, worst first; devices of which the same is said are told of once. */
export function troubles<D extends Member>(family: Family<D>): Trouble<D>[] {
  const found = new Map<string, Trouble<D>>();
  for (const { device, partitions } of family.units) {
    for (const d of [device, ...partitions]) {
      const how = standing(d, d === device && partitions.length > 0);
      const same = d !== device && how === standing(device, true) && why(device).includes(why(d));
      if (!worst.includes(how) || same) continue; // of the whole it is said already
      const key = `${how} ${why(d)}`;
      const trouble = found.get(key) ?? { standing: how, why: why(d), devices: [] };
      found.set(key, trouble);
      trouble.devices.push(d);
    }
  }
  return [...found.values()].sort((a, b) => worst.indexOf(a.standing) - worst.indexOf(b.standing));
}

/** Enough of a device's name to tell it from its neighbours. */
export function shortName(deviceId: string, parent?: string): string {
  if (parent && deviceId.startsWith(`${parent}/`)) return deviceId.slice(parent.length + 1);
  const name = deviceId.slice(deviceId.indexOf(":") + 1).replace(/^0000:(?=[\da-f]{2}:[\da-f]{2}\.)/, "");
  const [whole = "", part] = name.split("/");
  const short = whole.length > 9 ? `…${whole.slice(-4)}` : whole;
  return part === undefined ? short : `${short}/${part}`;
}
