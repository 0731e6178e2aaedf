import { useCallback, useMemo } from "react";
import { t } from "../../i18n";
import { readable } from "../../words";
import type { TimeSeries } from "../history/history";
import { MetricHistory } from "../history/MetricHistory";
import { Chart } from "../session/Chart";
import type { Sample, Series } from "../session/series";

const words: Record<string, string> = {
  util: "Utilization",
  mem: "Memory",
  power: "Power",
  temperature: "Temperature",
  clock: "Clock",
  energy: "Energy",
};
const order = Object.keys(words);

/** Returns the display name of a metric: cuda_util of the plugin cuda is "Utilization". */
export function metricName(name: string, plugin: string): string {
  const short = name.startsWith(`${plugin}_`)
    ? name.slice(plugin.length + 1)
    : (order.find((w) => name.endsWith(`_${w}`)) ?? name);
  return t(words[short] ?? readable(short));
}

const place = (name: string) => {
  const at = order.findIndex((w) => name.endsWith(`_${w}`));
  return at < 0 ? order.length : at;
};

interface Props {
  plugin: string;
  latest: readonly Sample[];
  /** The samples since the page was opened. */
  series: readonly Series[];
}

/** Shows what a device measured over time. */
export function DeviceHistory({ plugin, agent, device }: { plugin: string; agent: string; device: string }) {
  const subjects = useMemo(() => [agent], [agent]);
  const only = useCallback((s: TimeSeries) => s.deviceId === device, [device]);
  const nameOf = useCallback((name: string) => metricName(name, plugin), [plugin]);
  return <MetricHistory subjects={subjects} only={only} nameOf={nameOf} labelOf={noLabel} place={place} />;
}

const noLabel = () => "";

/** Shows the current metrics of a device and how accurate each is. */
export function DeviceMetrics({ plugin, latest, series }: Props) {
  const missing = latest.filter((m) => m.quality === "UNAVAILABLE");
  const shown = [...series].sort((a, b) => place(a.name) - place(b.name) || a.name.localeCompare(b.name));
  return (
    <div className="stack small">
      {shown.length === 0 ? (
        <p className="dim">
          {latest.length > missing.length ? t("Waiting for new measurements") : t("No measurements available.")}
        </p>
      ) : null}
      <div className="gauges">
        {shown.map((s) => (
          <Chart key={s.key} series={s} name={metricName(s.name, plugin)} showQuality />
        ))}
      </div>
      {missing.length > 0 ? (
        <p className="dim">
          {t("unavailable")}: {missing.map((m) => metricName(m.name, plugin)).join(", ")}
        </p>
      ) : null}
    </div>
  );
}
