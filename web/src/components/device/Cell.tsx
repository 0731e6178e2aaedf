import { t } from "../../i18n";
import { slotName } from "../../slots";
import { stateWord } from "../../words";
import { amount, trim } from "../format";
import { type Member, problemText, shortName, stateOf } from "./fleet";
import { type Holder, held, mainSlot, type Segment, segments } from "./segments";

export interface DeviceView extends Member {
  model: string;
  holders: Holder[];
}

export const unusable = (d: DeviceView) => !d.allocatable || d.health === "UNHEALTHY" || d.health === "LOST";

const who = (s: Segment) =>
  s.session ? `${s.session.name}${s.kind === "mine" ? ` (${t("yours")})` : ""}` : t("another user");

/** Returns the content of a cell as text for screen readers. */
export function describe(device: DeviceView, parts: Segment[], utilization: number | null): string {
  const slot = mainSlot(device.capacity);
  const capacity = amount(slot, device.capacity[slot] ?? "0");
  const holders = parts.map(
    (p) =>
      `${who(p)} ${Object.entries(p.amounts)
        .map(([s, n]) => amount(s, n))
        .join(" + ")}`,
  );
  return [
    `${device.deviceId} ${device.model}`.trim(),
    parts.length > 0
      ? `${trim((held(parts) * 100).toFixed(0))} % ${t("of")} ${capacity} ${slotName(slot)} ${t("in use")}: ${holders.join(", ")}`
      : unusable(device)
        ? t("not in use")
        : t("free"),
    utilization === null ? "" : t("utilization {{n}} %", { n: Math.round(utilization) }),
    [
      stateWord(device.health).toLowerCase(),
      unusable(device) && device.health === "HEALTHY" ? t("not schedulable") : "",
      problemText(device),
    ]
      .filter(Boolean)
      .join(", "),
  ]
    .filter(Boolean)
    .join("; ");
}

interface Props {
  device: DeviceView;
  utilization: number | null;
  opened: boolean;
  onOpen: () => void;
  /** A smaller size, for agents with many devices. */
  size?: "dense" | "small";
  /** The device ID of the parent of a partition. */
  parent?: string;
}

/** Shows a device as a rectangle that its allocations fill from the bottom. */
export function Cell({ device, utilization, opened, onOpen, size, parent }: Props) {
  const parts = segments(device);
  const slot = mainSlot(device.capacity);
  const name = shortName(device.deviceId, parent);
  const description = describe(device, parts, utilization);
  // Accessibility: the accessible name must contain the visible text.
  const label = description.includes(name) ? description : `${name}: ${description}`;
  const state = stateOf(device);
  return (
    <button
      type="button"
      className={`slip ${size ?? ""}`}
      aria-label={label}
      title={label}
      aria-expanded={opened}
      onClick={onOpen}
      data-device={device.deviceId}
    >
      <span className={`cell ${size ?? ""} stands-${state}`} aria-hidden="true">
        {parts.map((p, i) => (
          <span
            key={p.key}
            className={`part ${p.kind}${i % 2 ? " odd" : ""}`}
            style={{ height: `${p.part * 100}%` }}
            data-part={p.part}
            data-amount={p.part >= 0.15 && !size ? short(slot, p) : undefined}
          />
        ))}
        {utilization !== null ? (
          <span className="tide" style={{ height: `${Math.min(100, Math.max(0, utilization))}%` }} />
        ) : null}
      </span>
      <span className="slip-name">{name}</span>
    </button>
  );
}

const short = (slot: string, p: Segment) =>
  p.amounts[slot] ? amount(slot, p.amounts[slot]) : `${Math.round(p.part * 100)}%`;

/** Shows CPU or memory as a horizontal bar that its allocations fill from the left. */
export function Pool({ device, slot }: { device: DeviceView; slot: string }) {
  const parts = segments({
    capacity: { [slot]: device.capacity[slot] ?? "0" },
    holders: device.holders.filter((h) => h.slot === slot),
  });
  const used = parts.reduce((sum, p) => sum + Number(p.amounts[slot] ?? 0), 0);
  return (
    <div className="hold">
      <span>{slotName(slot)}</span>
      <span className="track" role="img" aria-label={describe(device, parts, null)}>
        {parts.map((p, i) => (
          <span
            key={p.key}
            className={`part ${p.kind}${i % 2 ? " odd" : ""}`}
            style={{ width: `${p.part * 100}%` }}
            title={who(p)}
          />
        ))}
      </span>
      <span className="dim">
        {amount(slot, String(used))} / {amount(slot, device.capacity[slot] ?? "0")}
      </span>
    </div>
  );
}
