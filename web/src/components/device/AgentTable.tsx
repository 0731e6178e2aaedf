import { Link } from "@tanstack/react-router";
import { type SlotType, useSlotTypes } from "../../hooks/useSlotTypes";
import { t } from "../../i18n";
import { slotName } from "../../slots";
import { Status } from "../Status";
import { type AgentView, utilization } from "./AgentCard";
import { type DeviceView, describe } from "./Cell";
import { iconOf } from "./FamilyBerths";
import { families, pools, problemText, stateOf } from "./fleet";
import { Glyph } from "./Glyph";
import { mainSlot, segments } from "./segments";

/** Shows the agents of the cards as a table, for users who prefer tables. */
export function AgentTable({ agents }: { agents: AgentView[] }) {
  const types = useSlotTypes();
  return (
    <div className="panel scroll-x" role="region" aria-label={t("Devices")} tabIndex={0}>
      <table className="grid" aria-label={t("Devices")}>
        <thead>
          <tr>
            <th scope="col">{t("Machine")}</th>
            <th scope="col">{t("Device")}</th>
            <th scope="col">{t("Model")}</th>
            <th scope="col">{t("Health")}</th>
            <th scope="col" className="num">
              {t("Utilization")}
            </th>
            <th scope="col">{t("In use")}</th>
          </tr>
        </thead>
        <tbody>
          {agents.flatMap((a) =>
            [
              ...pools.flatMap((slot) => a.devices.filter((d) => slot in d.capacity)),
              ...families(a.devices).flatMap((f) => f.units.flatMap((u) => [u.device, ...u.partitions])),
            ].map((d) => (
              <Row key={d.id} agent={a} device={d} cut={a.devices.some((p) => p.parent?.id === d.id)} types={types} />
            )),
          )}
        </tbody>
      </table>
    </div>
  );
}

function Row({
  agent,
  device,
  cut,
  types,
}: {
  agent: AgentView;
  device: DeviceView;
  cut: boolean;
  types: ReadonlyMap<string, SlotType>;
}) {
  const load = utilization(agent, device);
  const state = stateOf(device, cut);
  const reason = problemText(device);
  return (
    <tr className={state === "rejected" || state === "cut" ? "dimmed" : undefined}>
      <td>
        {agent.name} {agent.status === "ALIVE" ? null : <Status status={agent.status} />}
      </td>
      <td className={device.parent ? "below" : undefined}>
        <Link to="/cluster/devices/$id" params={{ id: device.id }}>
          {device.deviceId}
        </Link>
      </td>
      <td>
        <span className="row tight keep nowrap">
          {device.plugin ? <Glyph icon={iconOf(device.plugin, Object.keys(device.capacity), types)} size={18} /> : null}
          {device.model || slotName(mainSlot(device.capacity))}
        </span>
      </td>
      <td>
        <Status status={state} />
        {reason ? <div className="dim prosy">{reason}</div> : null}
      </td>
      <td className="num nowrap">{load === null ? "–" : `${Math.round(load)} %`}</td>
      <td>{state === "cut" ? "–" : describe(device, segments(device), null).split("; ")[1]}</td>
    </tr>
  );
}
