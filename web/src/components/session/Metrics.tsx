import { useCallback, useMemo } from "react";
import { useSubscription } from "urql";
import { graphql } from "../../api/graphql";
import { t } from "../../i18n";
import { slotName } from "../../slots";
import { readable } from "../../words";
import { bySlot, slotHours } from "../format";
import type { TimeSeries } from "../history/history";
import { MetricHistory } from "../history/MetricHistory";
import { Empty } from "../Note";
import { Chart } from "./Chart";
import { extend, type Series } from "./series";
import { Used } from "./Used";

const KernelStats = graphql(`
  subscription KernelStats($session: ID!) {
    kernelStats(session: $session) {
      kernelId at metrics { name deviceId value capacity unit quality }
    }
  }
`);

const words: Record<string, string> = {
  cpu_util: "CPU",
  cpu_used_ms: "CPU time",
  mem_used: "Memory",
  net_rx: "Network in",
  net_tx: "Network out",
  io_read: "Disk read",
  io_write: "Disk written",
  pids: "Processes",
  disk_used: "Disk",
  disk_files: "Files on the disk",
};

const order = [
  "cpu_util",
  "mem_used",
  "",
  "net_rx",
  "net_tx",
  "disk_used",
  "disk_files",
  "io_read",
  "io_write",
  "pids",
];

/** Sorts metrics by importance; those of devices come right after CPU and memory. -1 leaves one out. */
const place = (name: string) => (name === "cpu_used_ms" ? -1 : order.includes(name) ? order.indexOf(name) : 2);

const metricName = (name: string) => t(words[name] ?? readable(name));

const nameOf = (s: Series) => `${metricName(s.name)}${s.deviceId ? ` · ${s.deviceId}` : ""}`;

interface Props {
  session: string;
  live: boolean;
  usage: { slot: string; slotSeconds: string }[];
  kernels: { id: string; hostname: string }[];
  /** When its containers ran, if they have ended. */
  ran: { from: string; to: string } | null;
}

/** Shows what a session uses now, and what it used before. */
export function Metrics({ session, live, usage, kernels, ran }: Props) {
  const subjects = useMemo(() => kernels.map((k) => k.id), [kernels]);
  const labelOf = useCallback(
    (s: TimeSeries) => {
      const host = kernels.length > 1 ? (kernels.find((k) => k.id === s.subject)?.hostname ?? "") : "";
      return [host, s.deviceId].filter(Boolean).join(" · ");
    },
    [kernels],
  );
  return (
    <div className="stack">
      {live ? <Live session={session} /> : null}
      {live ? <h2>{t("History")}</h2> : null}
      <Used session={session} nameOf={metricName} />
      <MetricHistory subjects={subjects} nameOf={metricName} labelOf={labelOf} place={place} fixed={ran ?? undefined} />
      {usage.length > 0 ? (
        <p className="dim">
          {t("Usage so far:")}{" "}
          {[...usage]
            .sort((a, b) => bySlot(a.slot, b.slot))
            .map((u) => `${slotName(u.slot)} ${t("{{n}} h", { n: slotHours(u.slot, u.slotSeconds) })}`)
            .join(" · ")}
        </p>
      ) : null}
    </div>
  );
}

function Live({ session }: { session: string }) {
  const [{ data: series }] = useSubscription(
    { query: KernelStats, variables: { session } },
    (known: Series[] | undefined, { kernelStats: s }) =>
      extend(known ?? [], s.kernelId, Date.parse(s.at ?? new Date().toISOString()), s.metrics),
  );
  const shown = (series ?? [])
    .filter((s) => place(s.name) >= 0)
    .sort((a, b) => place(a.name) - place(b.name) || a.key.localeCompare(b.key));
  if (shown.length === 0)
    return (
      <div className="panel">
        <Empty title={t("Waiting for the first samples")}>
          {t("Machines measure every few seconds while a session runs.")}
        </Empty>
      </div>
    );
  return (
    <div className="cards">
      {shown.map((s) => (
        <Chart key={s.key} series={s} name={nameOf(s)} />
      ))}
    </div>
  );
}
