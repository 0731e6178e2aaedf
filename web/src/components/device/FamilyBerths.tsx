import type { ReactNode } from "react";
import { type SlotType, useSlotTypes } from "../../hooks/useSlotTypes";
import { t } from "../../i18n";
import { slotName } from "../../slots";
import { Status } from "../Status";
import { Cell, type DeviceView } from "./Cell";
import { allocatableDevices, type Family, type Problem, problems, shortName, stateOf } from "./fleet";
import { Glyph } from "./Glyph";

/** Families with more devices than this are drawn smaller. */
const denseAbove = 16;

interface Props {
  family: Family<DeviceView>;
  load: (device: DeviceView) => number | null;
  opened: string | null;
  onOpen: (id: string) => void;
  /** The details of the selected device. */
  children: ReactNode;
}

/** Shows the accelerators of one vendor on an agent: their model, a cell for each device, and their problems. */
export function FamilyBerths({ family, load, opened, onOpen, children }: Props) {
  const types = useSlotTypes();
  const given = allocatableDevices(family).filter((d) => !["rejected", "UNHEALTHY", "LOST"].includes(stateOf(d)));
  const busy = given.filter((d) => d.holders.length > 0).length;
  const cell = (d: DeviceView, more?: { size: "small"; parent: string }) => (
    <Cell
      key={d.id}
      device={d}
      utilization={load(d)}
      opened={opened === d.id}
      onOpen={() => onOpen(d.id)}
      size={family.units.length > denseAbove ? "dense" : undefined}
      {...more}
    />
  );
  return (
    <div className="stack small" role="group" aria-label={family.vendor || family.plugin} data-family={family.plugin}>
      <div className="row tight">
        <Glyph icon={iconOf(family.plugin, family.slots, types)} />
        <b>{family.vendor || family.plugin}</b>
        <span className="dim">{namesOf(family.slots)}</span>
        <span className="push dim">{t("{{busy}} of {{all}} in use", { busy, all: given.length })}</span>
      </div>
      <div className="quay">
        {family.units.map(({ device, partitions }) =>
          partitions.length === 0 ? (
            cell(device)
          ) : (
            <div key={device.id} className={`cutting stands-${stateOf(device, true)}`}>
              <div className="row tight keep">
                {partitions.map((p) => cell(p, { size: "small", parent: device.deviceId }))}
              </div>
              <button
                type="button"
                className="cutting-name"
                aria-expanded={opened === device.id}
                onClick={() => onOpen(device.id)}
                data-device={device.deviceId}
                aria-label={t("{{short}}: {{device}} {{model}}, {{n}} partitions", {
                  short: shortName(device.deviceId),
                  device: device.deviceId,
                  model: device.model,
                  n: partitions.length,
                })}
                title={`${device.deviceId} ${device.model}`}
              >
                {shortName(device.deviceId)}
              </button>
            </div>
          ),
        )}
      </div>
      {children}
      <Troubles list={problems(family)} />
    </div>
  );
}

function Troubles({ list }: { list: Problem<DeviceView>[] }) {
  if (list.length === 0) return null;
  return (
    <ul className="troubles">
      {list.map((x) => (
        <li key={`${x.state} ${x.text}`}>
          <Status status={x.state} />{" "}
          <span className="mono" title={x.devices.map((d) => d.deviceId).join(", ")}>
            {some(x.devices.map((d) => shortName(d.deviceId)))}
          </span>
          {x.text ? <span className="dim">: {x.text}</span> : null}
        </li>
      ))}
    </ul>
  );
}

/** Returns the first few of many names. */
const some = (names: string[]) =>
  names.length <= 4
    ? names.join(", ")
    : `${names.slice(0, 3).join(", ")} ${t("and {{count}} more", { count: names.length - 3 })}`;

type Types = ReadonlyMap<string, SlotType>;

/** Returns the icon of the first slot that has one, or else of another slot of the same plugin. */
export const iconOf = (plugin: string, slots: readonly string[], types: Types) =>
  slots.map((s) => types.get(s)?.icon).find(Boolean) ??
  [...types.values()].find((s) => s.name.startsWith(`${plugin}.`))?.icon ??
  "";

export const namesOf = (slots: readonly string[]) =>
  [...new Set(slots.filter((s) => !s.endsWith(".mem")).map((s) => slotName(s)))].join(", ");
