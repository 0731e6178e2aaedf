import { useSubscription } from "urql";
import { graphql } from "../../api/graphql";
import { t } from "../../i18n";
import { Empty } from "../Note";
import { bySlot, bytes, slotHours, slotName, trim } from "../format";
import { type Series, extend, isCounter, rates } from "./series";

const KernelStats = graphql(`
  subscription KernelStats($session: ID!) {
    kernelStats(session: $session) {
      kernelId at metrics { name deviceId value capacity unit quality }
    }
  }
`);

const words: Record<string, string> = {
  cpu_util: "CPU", cpu_used_ms: "CPU time", mem_used: "Memory", net_rx: "Network in", net_tx: "Network out",
  io_read: "Disk read", io_write: "Disk written", pids: "Processes",
};

/** What people look for first comes first; metrics of devices come right after CPU and memory. */
const place = ({ name, deviceId }: Series) => (deviceId ? 2 : ["cpu_util", "mem_used", "", "net_rx", "net_tx", "io_read", "io_write", "pids"].indexOf(name));

interface Props {
  session: string;
  live: boolean;
  usage: { slot: string; slotSeconds: string }[];
}

export function Metrics({ session, live, usage }: Props) {
  const [{ data: series }] = useSubscription(
    { query: KernelStats, variables: { session } },
    (known: Series[] | undefined, { kernelStats: s }) => extend(known ?? [], s.kernelId, Date.parse(s.at ?? new Date().toISOString()), s.metrics),
  );
  const shown = (series ?? []).filter((s) => s.name !== "cpu_used_ms").sort((a, b) => place(a) - place(b) || a.key.localeCompare(b.key));
  return (
    <div className="stack">
      {shown.length === 0 ? (
        <div className="panel">
          <Empty title={live ? t("Waiting for the first samples") : t("No samples")}>{t("Agents measure every few seconds while a session runs.")}</Empty>
        </div>
      ) : null}
      <div className="cards">
        {shown.map((s) => (
          <Chart key={s.key} series={s} />
        ))}
      </div>
      {usage.length > 0 ? (
        <p className="dim">
          {t("Charged so far:")}{" "}
          {[...usage].sort((a, b) => bySlot(a.slot, b.slot)).map((u) => `${slotName(u.slot)} ${slotHours(u.slot, u.slotSeconds)} h`).join(" · ")}
        </p>
      ) : null}
    </div>
  );
}

function say(value: number, unit: string): string {
  if (unit === "bytes") return bytes(value);
  if (unit === "percent") return `${trim(value.toFixed(1))} %`;
  if (unit === "celsius") return `${Math.round(value)} °C`;
  if (unit === "watt") return `${Math.round(value)} W`;
  return trim(value.toFixed(value < 10 ? 1 : 0)) + (unit === "count" || !unit ? "" : ` ${unit}`);
}

function Chart({ series }: { series: Series }) {
  const counter = isCounter(series.name);
  const points = counter ? rates(series.points) : series.points;
  const last = points.at(-1);
  const ceiling = Math.max(counter ? 0 : series.capacity, series.unit === "percent" && !counter ? 100 : 0, ...points.map((p) => p.value), 1e-9);
  const from = points[0]?.at ?? 0;
  const span = Math.max(1, (last?.at ?? 1) - from);
  const at = (p: { at: number; value: number }) => `${((p.at - from) / span) * 300},${62 - (p.value / ceiling) * 58}`;
  const line = points.map(at).join(" ");
  const name = `${t(words[series.name] ?? series.name.replaceAll("_", " "))}${series.deviceId ? ` · ${series.deviceId}` : ""}`;
  const value = last ? say(last.value, series.unit) + (counter ? "/s" : "") : "–";
  return (
    <figure className="panel pad" style={{ margin: 0 }}>
      <figcaption className="row">
        <span>{name}</span>
        {series.quality !== "measured" ? <span className="dim">{t(series.quality)}</span> : null}
        <b className="push">{value}</b>
        {series.capacity > 0 && !counter && series.unit !== "percent" ? <span className="dim">/ {say(series.capacity, series.unit)}</span> : null}
      </figcaption>
      <svg className="spark" viewBox="0 0 300 64" preserveAspectRatio="none" role="img" aria-label={`${name}: ${value}`}>
        {points.length > 1 ? (
          <>
            <polygon className="area" points={`0,63 ${line} 300,63`} />
            <polyline className="edge" points={line} />
          </>
        ) : null}
        <line x1="0" y1="63" x2="300" y2="63" stroke="var(--line)" vectorEffect="non-scaling-stroke" />
      </svg>
    </figure>
  );
}
