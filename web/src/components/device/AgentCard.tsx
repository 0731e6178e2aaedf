import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useNow } from "../../hooks/useNow";
import { t } from "../../i18n";
import { Status } from "../Status";
import { amount, duration, slotName } from "../format";
import { Cordon, type Cordoned } from "./Cordon";
import { Cell, type DeviceView, Pool, describe, sick } from "./Cell";
import { mainSlot, segments } from "./segments";

export interface AgentView extends Cordoned {
  id: string;
  name: string;
  status: string;
  version: string;
  architecture: string;
  lastSeenAt: string;
  resourceGroup: { id: string; name: string };
  devices: DeviceView[];
  plugins: { name: string; version: string; state: string; message: string; restarts: number }[];
  stats: { name: string; deviceId: string; value: number; unit: string; quality: string }[];
}

/** The measured load of one device in percent, when its plugin measures it. */
export function utilization(agent: AgentView, device: DeviceView): number | null {
  const metric = agent.stats.find((m) => m.deviceId === device.deviceId && m.name.endsWith("_util") && m.quality !== "unavailable");
  return metric ? metric.value : null;
}

const pools = ["cpu", "mem"];

export const accelerators = (agent: AgentView) =>
  agent.devices.filter((d) => !pools.some((p) => p in d.capacity)).sort((a, b) => a.deviceId.localeCompare(b.deviceId, undefined, { numeric: true }));

export function AgentCard({ agent }: { agent: AgentView }) {
  const [opened, setOpened] = useState<string | null>(null);
  const now = useNow(agent.status !== "alive" || agent.drainDeadline !== null, 5000);
  const device = agent.devices.find((d) => d.id === opened);
  const troubled = agent.plugins.filter((p) => p.state !== "running");
  const cells = accelerators(agent);
  return (
    <section className={`panel agent${agent.status === "alive" ? "" : " away"}`} aria-labelledby={`agent-${agent.id}`} data-agent={agent.name}>
      <div className="row">
        <h2 id={`agent-${agent.id}`}>{agent.name}</h2>
        <Status status={agent.status} />
        <span className="push dim">
          {agent.resourceGroup.name} · {agent.architecture}
        </span>
      </div>
      <Cordon agent={agent} now={now} />
      {agent.status === "alive" ? null : <p className="dim">{t("last heard of {{ago}} ago", { ago: duration(now - Date.parse(agent.lastSeenAt)) })}</p>}
      {cells.length > 0 ? (
        <div className="quay">
          {cells.map((d) => (
            <Cell key={d.id} device={d} utilization={utilization(agent, d)} opened={opened === d.id} onOpen={() => setOpened(opened === d.id ? null : d.id)} />
          ))}
        </div>
      ) : (
        <p className="dim">{t("No accelerators.")}</p>
      )}
      {device ? <Detail device={device} load={utilization(agent, device)} /> : null}
      <div className="stack small">
        {pools.map((slot) => {
          const pool = agent.devices.find((d) => slot in d.capacity);
          return pool ? <Pool key={slot} device={pool} slot={slot} /> : null;
        })}
      </div>
      {troubled.map((p) => (
        <p key={p.name} className={p.state === "disabled" ? "dim" : "tone-bad"}>
          {t("plugin {{name}}: {{state}}", { name: p.name, state: p.state })} {p.message}
        </p>
      ))}
    </section>
  );
}

function Detail({ device, load }: { device: DeviceView; load: number | null }) {
  const slot = mainSlot(device.capacity);
  const parts = segments(device);
  return (
    <div className="stack small" role="group" aria-label={device.deviceId}>
      <div className="row">
        <h3>{device.deviceId}</h3>
        <span className="dim">
          {device.vendor} {device.model} · {amount(slot, device.capacity[slot] ?? "0")} {slotName(slot)}
          {load === null ? "" : ` · ${t("utilization {{n}} %", { n: Math.round(load) })}`}
        </span>
      </div>
      {sick(device) ? (
        <p className="tone-bad">
          {t(device.health)} {device.healthMessage} {device.rejectReasons.join(", ")}
        </p>
      ) : null}
      {parts.length === 0 ? <p className="dim">{t("Nobody holds a part of it.")}</p> : null}
      <ul className="rows">
        {parts.map((p) => (
          <li key={p.key} style={{ padding: "4px 0" }}>
            {p.session ? (
              <Link to="/sessions/$id" params={{ id: p.session.id }}>
                {p.session.name}
              </Link>
            ) : (
              <span className="dim">{t("someone else")}</span>
            )}
            {p.kind === "mine" ? <span className="dim">{t("yours")}</span> : null}
            <span className="push">{Object.entries(p.amounts).map(([s, n]) => `${amount(s, n)} ${slotName(s)}`).join(" + ")}</span>
          </li>
        ))}
      </ul>
    </div>
  );
}

/** The same as the cards, for those who read tables better. */
export function AgentTable({ agents }: { agents: AgentView[] }) {
  return (
    <div className="panel scroll-x">
      <table className="grid">
        <thead>
          <tr>
            <th>{t("Agent")}</th>
            <th>{t("Status")}</th>
            <th>{t("Device")}</th>
            <th>{t("Model")}</th>
            <th>{t("Health")}</th>
            <th className="num">{t("Utilization")}</th>
            <th>{t("Held")}</th>
          </tr>
        </thead>
        <tbody>
          {agents.flatMap((a) =>
            a.devices.map((d) => {
              const load = utilization(a, d);
              return (
                <tr key={d.id}>
                  <td>{a.name}</td>
                  <td>
                    <Status status={a.status} />
                  </td>
                  <td>{d.deviceId}</td>
                  <td>{d.model || slotName(mainSlot(d.capacity))}</td>
                  <td className={sick(d) ? "tone-bad" : ""}>{t(d.health)}</td>
                  <td className="num">{load === null ? "–" : `${Math.round(load)} %`}</td>
                  <td>{describe(d, segments(d), null).split("; ")[1]}</td>
                </tr>
              );
            }),
          )}
        </tbody>
      </table>
    </div>
  );
}
