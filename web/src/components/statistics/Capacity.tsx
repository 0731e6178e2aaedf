import { useQuery } from "urql";
import { fromGraphQL } from "../../api/errors";
import { t } from "../../i18n";
import { slotName } from "../../slots";
import { bySlot, isMemory, slotHours } from "../format";
import { Figure } from "../history/MetricHistory";
import { Empty, FailureNote } from "../Note";
import { CapacityReportQuery, capacityPlot, type Part, parts, percent } from "./statistics";

const labels: Record<Part, string> = {
  used: "Used",
  idle: "Allocated, not used",
  unmeasured: "Allocated, not measured",
  promised: "Starting",
  unallocated: "Free",
  outOfService: "Out of service",
};

/** Shows which part of the capacity was used, allocated, free and out of service. */
export function Capacity({ from, to, zone }: { from: Date; to: Date; zone: string }) {
  const input = { from: from.toISOString(), to: to.toISOString(), timeZone: zone };
  const step = to.getTime() - from.getTime() > 3 * 86_400_000 ? "DAY" : "HOUR";
  const [{ data, error, fetching }] = useQuery({ query: CapacityReportQuery, variables: { input } });
  const [{ data: timed }] = useQuery({ query: CapacityReportQuery, variables: { input: { ...input, by: [step] } } });
  const rows = [...(data?.capacityReport.rows ?? [])].sort((a, b) => bySlot(a.slot, b.slot));
  const since = data?.capacityReport.since;
  const names = Object.fromEntries(parts.map((p) => [p, t(labels[p])])) as Record<Part, string>;
  return (
    <div className="stack">
      <FailureNote failure={error ? fromGraphQL(error) : null} />
      {data && rows.length === 0 && !fetching ? (
        <div className="panel">
          <Empty title={t("No capacity was recorded in this range")}>
            {t("The record begins when the first machine joins, or with the version that records it.")}
          </Empty>
        </div>
      ) : null}
      {rows.length > 0 ? (
        <section className="panel scroll-x" aria-label={t("Capacity")} tabIndex={0}>
          <table className="grid">
            <thead>
              <tr>
                <th>{t("Slot")}</th>
                <th className="num">{t("Capacity")}</th>
                {parts.map((p) => (
                  <th key={p} className="num">
                    {names[p]}
                  </th>
                ))}
              </tr>
            </thead>
            <tbody>
              {rows.map((r) => (
                <tr key={r.slot}>
                  <td>{slotName(r.slot)}</td>
                  <td className="num">
                    {slotHours(r.slot, r.capacity)} {isMemory(r.slot) ? t("GiB-hours") : t("hours")}
                  </td>
                  {parts.map((p) => (
                    <td key={p} className="num">
                      {`${percent(r[p], r.capacity).toFixed(1)}\u00a0%`}
                    </td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      ) : null}
      {timed && timed.capacityReport.rows.length > rows.length ? (
        <div className="plots">
          {rows.map((r) => (
            <Figure
              key={r.slot}
              plot={capacityPlot(timed.capacityReport.rows, r.slot, names)}
              name={slotName(r.slot)}
              from={from.getTime() / 1000}
              to={to.getTime() / 1000}
            />
          ))}
        </div>
      ) : null}
      {since ? (
        <p className="dim">
          {t("The parts of every row add up to its capacity. The record begins at {{time}}.", {
            time: new Date(since).toLocaleString(),
          })}
        </p>
      ) : null}
    </div>
  );
}
