import { useSubscription } from "urql";
import { graphql } from "../../api/graphql";
import { t } from "../../i18n";
import { slotName } from "../../slots";
import { readable } from "../../words";
import { bySlot, slotHours } from "../format";
import { Empty } from "../Note";
import { Chart } from "./Chart";
import { extend, type Series } from "./series";

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

/** Sorts metrics by importance; those of devices come right after CPU and memory. */
const place = ({ name, deviceId }: Series) =>
  deviceId
    ? 2
    : [
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
      ].indexOf(name);

const nameOf = (s: Series) => `${t(words[s.name] ?? readable(s.name))}${s.deviceId ? ` · ${s.deviceId}` : ""}`;

interface Props {
  session: string;
  live: boolean;
  usage: { slot: string; slotSeconds: string }[];
}

export function Metrics({ session, live, usage }: Props) {
  const [{ data: series }] = useSubscription(
    { query: KernelStats, variables: { session } },
    (known: Series[] | undefined, { kernelStats: s }) =>
      extend(known ?? [], s.kernelId, Date.parse(s.at ?? new Date().toISOString()), s.metrics),
  );
  const shown = (series ?? [])
    .filter((s) => s.name !== "cpu_used_ms")
    .sort((a, b) => place(a) - place(b) || a.key.localeCompare(b.key));
  return (
    <div className="stack">
      {shown.length === 0 ? (
        <div className="panel">
          <Empty title={live ? t("Waiting for the first samples") : t("No samples")}>
            {t("Machines measure every few seconds while a session runs.")}
          </Empty>
        </div>
      ) : null}
      <div className="cards">
        {shown.map((s) => (
          <Chart key={s.key} series={s} name={nameOf(s)} />
        ))}
      </div>
      {usage.length > 0 ? (
        <p className="dim">
          {t("Usage so far:")}{" "}
          {[...usage]
            .sort((a, b) => bySlot(a.slot, b.slot))
            .map((u) => `${slotName(u.slot)} ${slotHours(u.slot, u.slotSeconds)} h`)
            .join(" · ")}
        </p>
      ) : null}
    </div>
  );
}
