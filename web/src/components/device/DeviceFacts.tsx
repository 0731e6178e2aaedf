import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { t } from "../../i18n";
import { slotName } from "../../slots";
import { readable } from "../../words";
import { amount, bySlot, bytes } from "../format";
import { shortName } from "./fleet";

interface Near {
  id: string;
  deviceId: string;
}

export interface Facts {
  deviceId: string;
  vendor: string;
  model: string;
  pciAddress: string;
  pcieRoot: string;
  numaNode: number | null;
  memoryBytes: number;
  processingUnits: number;
  groups: string[];
  enforcement: string | null;
  capacity: Record<string, string>;
  occupied: Record<string, string>;
  attributes: Record<string, string>;
  parent: Near | null;
  partitions: Near[];
  counters: { set: string; name: string; amount: number; total: number }[];
}

/** How containers are kept within their share of a device, as sentences. */
const enforcements: Record<string, string> = {
  ADVISORY: "Advisory: a container knows its share, but nothing enforces it",
  LIMIT: "Limit: a library in the container refuses memory beyond its share",
  MPS: "MPS: the server of the vendor divides the device, within one project",
  MIG: "MIG: the hardware divides the device",
};

/** Shows the properties of a device. */
export function DeviceFacts({ device }: { device: Facts }) {
  const rows: [string, ReactNode][] = [
    [t("Vendor"), device.vendor],
    [t("Device"), <code key="id">{device.deviceId}</code>],
    ...Object.keys(device.capacity)
      .sort(bySlot)
      .map((slot): [string, ReactNode] => [
        slotName(slot),
        <span key={slot} title={slot}>
          {t("{{held}} of {{all}} in use", {
            held: amount(slot, device.occupied[slot] ?? "0"),
            all: amount(slot, device.capacity[slot]!),
          })}
        </span>,
      ]),
    [t("Memory"), device.memoryBytes > 0 ? bytes(device.memoryBytes) : ""],
    [t("Processing units"), device.processingUnits > 0 ? device.processingUnits : ""],
    [t("PCI address"), device.pciAddress ? <code key="pci">{device.pciAddress}</code> : ""],
    [t("PCIe root"), device.pcieRoot ? <code key="root">{device.pcieRoot}</code> : ""],
    [t("NUMA node"), device.numaNode === null ? "" : String(device.numaNode)],
    [t("Groups"), device.groups.join(", ")],
    [t("Enforcement"), device.enforcement ? t(enforcements[device.enforcement] ?? device.enforcement) : ""],
    [t("Partition of"), device.parent ? <To key="parent" device={device.parent} name={device.parent.deviceId} /> : ""],
    [
      t("Partitions"),
      device.partitions.length > 0 ? <Parts key="parts" list={device.partitions} of={device.deviceId} /> : "",
    ],
    ...device.counters.map((c): [string, ReactNode] => [
      `${shortName(c.set)} ${readable(c.name)}`,
      t("uses {{n}} of {{all}}", { n: count(c.amount, c.name), all: count(c.total, c.name) }),
    ]),
    ...Object.keys(device.attributes)
      .filter((name) => name !== "enforcement")
      .sort()
      .map((name): [string, ReactNode] => [readable(name), device.attributes[name]]),
  ];
  return (
    <dl className="facts">
      {rows
        .filter(([, value]) => value !== "")
        .map(([name, value]) => [<dt key={`${name}:`}>{name}</dt>, <dd key={name}>{value}</dd>])}
    </dl>
  );
}

/** Formats a counter. Counters have no unit; the names of some show that they count bytes. */
const count = (n: number, name: string) => (/memory|bytes/.test(name) && n >= 1 << 20 ? bytes(n) : String(n));

const To = ({ device, name }: { device: Near; name: string }) => (
  <Link to="/cluster/devices/$id" params={{ id: device.id }}>
    {name}
  </Link>
);

const Parts = ({ list, of }: { list: Near[]; of: string }) => (
  <span className="row tight">
    {list.map((d) => (
      <To key={d.id} device={d} name={shortName(d.deviceId, of)} />
    ))}
  </span>
);
