import { Button, Select } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { useQuery } from "urql";
import { fromGraphQL } from "../../api/errors";
import type { VariablesOf } from "../../api/graphql";
import { t } from "../../i18n";
import { slotName } from "../../slots";
import { word } from "../../words";
import { bytes, isMemory, slotHours } from "../format";
import { Empty, FailureNote } from "../Note";
import { Terminate } from "../session/Terminate";
import { WasteQuery, type WasteRow } from "./statistics";
import { secs } from "./Waits";

type Report = VariablesOf<typeof WasteQuery>["input"]["report"];

const reports: Report[] = [
  "UNUSED_ACCELERATORS",
  "LOW_USE",
  "MEMORY_ABOVE_NEED",
  "SMALLER_DEVICE",
  "LONG_LIMITS",
  "FRAGMENTATION",
  "MOST_SLOTS",
  "LONGEST_WAITS",
  "UNUSED_MEMORY",
];

/** Columns of numbers by their names in the API. */
const columns: Record<string, string> = {
  asked: "Requested",
  utilization: "Utilization",
  measured: "Measured for",
  running: "Running for",
  allocated: "Allocated",
  sessions: "Sessions",
  peak: "Peak",
  suggested: "Suggested",
  p95: "95th percentile",
  unused: "Unused",
  devices: "Devices",
  limit: "Lifetime",
  ran: "Ran for",
  machines: "Machines",
  amount: "Amount",
  fits: "Fits on one machine",
  waiting: "Waiting for",
};

function text(row: WasteRow, n: WasteRow["numbers"][number]): string {
  if (n.value === null) return "–";
  if (n.unit === "bytes") return bytes(n.value);
  if (n.unit === "percent") return `${n.value.toFixed(1)}\u00a0%`;
  if (n.unit === "seconds") return secs(Math.round(n.value));
  if (n.unit === "slot-seconds" || n.unit === "byte-seconds")
    return `${slotHours(row.slot, String(n.value))} ${isMemory(row.slot) ? t("GiB-hours") : t("hours")}`;
  return String(Math.round(n.value * 1000) / 1000);
}

/** Lists sessions, users and machines that use less than they have, with the numbers and what can be done. */
export function Waste({ from, cluster }: { from: Date; cluster: boolean }) {
  const all: Report[] = cluster ? [...reports, "UNUSED_MACHINES"] : reports;
  const [report, setReport] = useState<Report>("UNUSED_ACCELERATORS");
  const [ending, setEnding] = useState<WasteRow | null>(null);
  const [{ data, error, fetching }, again] = useQuery({
    query: WasteQuery,
    variables: { input: { report, from: from.toISOString(), first: 100 } },
    requestPolicy: "network-only",
  });
  const rows = data?.waste ?? [];
  const numbers = rows[0]?.numbers ?? [];
  const running = report !== "LONGEST_WAITS";
  return (
    <div className="stack">
      <Select
        aria-label={t("Report")}
        w="min(100%, 480px)"
        allowDeselect={false}
        value={report}
        onChange={(value) => setReport((value ?? "UNUSED_ACCELERATORS") as Report)}
        data={all.map((value) => ({ value, label: word("WasteReport", value) }))}
      />
      <FailureNote failure={error ? fromGraphQL(error) : null} />
      {data && rows.length === 0 && !fetching ? (
        <div className="panel">
          <Empty title={t("Nothing to report")}>{t("The report covers what you can see in lists.")}</Empty>
        </div>
      ) : null}
      {rows.length > 0 ? (
        <section className="panel scroll-x" aria-label={t("Waste")} tabIndex={0}>
          <table className="grid">
            <thead>
              <tr>
                <th>{t("What")}</th>
                <th>{t("Slot")}</th>
                {numbers.map((n) => (
                  <th key={n.name} className="num">
                    {t(columns[n.name] ?? n.name)}
                  </th>
                ))}
                <th>{t("Measurement")}</th>
                <th>
                  <span className="sr-only">{t("Actions")}</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {rows.map((r) => (
                <tr key={r.session + r.user + r.agent + r.slot}>
                  <td>
                    {r.session ? (
                      <Link to="/sessions/$id" params={{ id: r.session }} search={{}}>
                        {r.sessionName}
                      </Link>
                    ) : null}
                    {r.user ? <div className={r.session ? "dim" : ""}>{r.userEmail || r.user}</div> : null}
                    {r.agent ? r.agentName || r.agent : null}
                  </td>
                  <td>{r.slot ? slotName(r.slot) : "–"}</td>
                  {r.numbers.map((n) => (
                    <td key={n.name} className="num">
                      {text(r, n)}
                    </td>
                  ))}
                  <td>{word("UseQuality", r.quality)}</td>
                  <td>
                    {r.session ? (
                      <Button size="compact-xs" variant="default" onClick={() => setEnding(r)}>
                        {t("Stop")}
                      </Button>
                    ) : null}
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      ) : null}
      <Terminate
        sessions={
          ending ? [{ id: ending.session, name: ending.sessionName, status: running ? "RUNNING" : "PENDING" }] : []
        }
        opened={ending !== null}
        onClose={() => setEnding(null)}
        onDone={() => again({ requestPolicy: "network-only" })}
      />
    </div>
  );
}
