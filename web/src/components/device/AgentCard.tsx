import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useNow } from "../../hooks/useNow";
import { t } from "../../i18n";
import { slotName } from "../../slots";
import { amount, duration } from "../format";
import { Status } from "../Status";
import { type DeviceView, Pool } from "./Cell";
import { Conditions, Cordon, type Cordoned } from "./Cordon";
import { FamilyBerths } from "./FamilyBerths";
import { type Family, families, pools, problemText, stateOf } from "./fleet";
import { Holders } from "./Holders";
import { hasProblem, PluginNote, type PluginView } from "./PluginNote";
import { mainSlot } from "./segments";

export interface AgentView extends Cordoned {
  id: string;
  name: string;
  status: string;
  version: string;
  architecture: string;
  zone: string;
  lastSeenAt: string;
  resourceGroup: { id: string; name: string };
  devices: DeviceView[];
  plugins: PluginView[];
  stats: { name: string; deviceId: string; value: number; unit: string; quality: string }[];
}

/** Returns the utilization of a device in percent; null if its plugin does not measure it. */
export function utilization(agent: AgentView, device: DeviceView): number | null {
  const metric = agent.stats.find(
    (m) => m.deviceId === device.deviceId && m.name.endsWith("_util") && m.quality !== "UNAVAILABLE",
  );
  return metric ? metric.value : null;
}

/** A card with more devices than this is as wide as the page. */
const wideAbove = 24;

export function AgentCard({ agent }: { agent: AgentView }) {
  const [opened, setOpened] = useState<string | null>(null);
  const now = useNow(agent.status !== "ALIVE" || agent.drainDeadline !== null, 5000);
  const of = (family: Family<DeviceView>) =>
    family.units.flatMap((u) => [u.device, ...u.partitions]).find((d) => d.id === opened);
  const kinds = families(agent.devices);
  const wide = agent.devices.length > wideAbove;
  return (
    <section
      className={`panel agent${agent.status === "ALIVE" ? "" : " away"}${wide ? " broad" : ""}`}
      aria-labelledby={`agent-${agent.id}`}
      data-agent={agent.name}
    >
      <div className="row">
        <h2 id={`agent-${agent.id}`}>{agent.name}</h2>
        <Status status={agent.status} />
        <span className="push dim">
          {[agent.resourceGroup.name, agent.architecture, agent.zone].filter(Boolean).join(" · ")}
        </span>
      </div>
      <Cordon agent={agent} now={now} />
      <Conditions agent={agent} />
      {agent.status === "ALIVE" ? null : (
        <p className="dim">{t("last seen {{ago}} ago", { ago: duration(now - Date.parse(agent.lastSeenAt)) })}</p>
      )}
      {kinds.length === 0 ? <p className="dim">{t("No accelerators.")}</p> : null}
      <div className="kinds">
        {kinds.map((family) => {
          const device = of(family);
          return (
            <FamilyBerths
              key={family.key}
              family={family}
              load={(d) => utilization(agent, d)}
              opened={opened}
              onOpen={(id) => setOpened(opened === id ? null : id)}
            >
              {device ? (
                <Detail
                  device={device}
                  load={utilization(agent, device)}
                  cut={agent.devices.some((d) => d.parent?.id === device.id)}
                />
              ) : null}
            </FamilyBerths>
          );
        })}
      </div>
      <div className="stack small">
        {pools.map((slot) => {
          const pool = agent.devices.find((d) => slot in d.capacity);
          return pool ? <Pool key={slot} device={pool} slot={slot} /> : null;
        })}
      </div>
      {agent.plugins.filter(hasProblem).map((p) => (
        <PluginNote key={p.name} plugin={p} />
      ))}
    </section>
  );
}

/** A summary of a device. The page of the device shows all details. */
function Detail({ device, load, cut }: { device: DeviceView; load: number | null; cut: boolean }) {
  const slot = mainSlot(device.capacity);
  const reason = problemText(device);
  return (
    <div className="stack small chosen" role="group" aria-label={device.deviceId}>
      <div className="row">
        <h3>{device.deviceId}</h3>
        <Status status={stateOf(device, cut)} />
        <span className="dim">
          {device.model}
          {slot ? ` · ${amount(slot, device.capacity[slot] ?? "0")} ${slotName(slot)}` : ""}
          {load === null ? "" : ` · ${t("utilization {{n}} %", { n: Math.round(load) })}`}
        </span>
        <Link className="push" to="/cluster/devices/$id" params={{ id: device.id }}>
          {t("Details")}
        </Link>
      </div>
      {reason ? <p className={stateOf(device, cut) === "cut" ? "dim" : "tone-bad"}>{reason}</p> : null}
      {cut ? null : <Holders device={device} />}
    </div>
  );
}
