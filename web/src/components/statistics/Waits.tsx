import { Checkbox, Select } from "@mantine/core";
import { useState } from "react";
import { useQuery } from "urql";
import { fromGraphQL } from "../../api/errors";
import { t } from "../../i18n";
import { word } from "../../words";
import { Figure } from "../history/MetricHistory";
import { Empty, FailureNote } from "../Note";
import { before, dimensions, type WaitDimension, WaitReportQuery, type WaitRow, waitPlot } from "./statistics";

interface Props {
  from: Date;
  to: Date;
  zone: string;
  stage: "WAIT" | "QUEUE" | "PULL" | "CREATE";
}

/** Seconds with their unit; a dash is a value that is not shown. */
export const secs = (v: number | null) =>
  v === null
    ? "–"
    : v < 120
      ? `${v}\u00a0s`
      : v < 7200
        ? `${(v / 60).toFixed(1)}\u00a0min`
        : `${(v / 3600).toFixed(1)}\u00a0h`;

const nameOf = (k: WaitRow["keys"][number]) =>
  k.dimension === "REASON" ? word("WaitReason", k.value as "NONE") : k.label || k.value || "–";

/** Shows how long starts took, grouped, over time and beside the range before. */
export function Waits({ from, to, zone, stage }: Props) {
  const [by, setBy] = useState<WaitDimension>("REASON");
  const [compare, setCompare] = useState(false);
  const input = (range: { from: Date; to: Date }, dims: WaitDimension[]) => ({
    input: { from: range.from.toISOString(), to: range.to.toISOString(), by: dims, stage, timeZone: zone },
  });
  const long = to.getTime() - from.getTime() > 3 * 86_400_000;
  const [{ data, error, fetching }] = useQuery({ query: WaitReportQuery, variables: input({ from, to }, [by]) });
  const [{ data: old }] = useQuery({
    query: WaitReportQuery,
    variables: input(before({ from, to }), [by]),
    pause: !compare,
  });
  const [{ data: timed }] = useQuery({
    query: WaitReportQuery,
    variables: input({ from, to }, [long ? "DAY" : "HOUR"]),
  });
  const rows = [...(data?.waitReport ?? [])].sort((a, b) => b.count - a.count);
  const earlier = new Map(old?.waitReport.map((r) => [r.keys[0]?.value, r]));
  return (
    <div className="stack">
      <div className="row">
        <Select
          aria-label={t("Group by")}
          w={190}
          allowDeselect={false}
          value={by}
          onChange={(value) => setBy((value ?? "REASON") as WaitDimension)}
          data={dimensions.map((value) => ({
            value,
            label: t("by {{what}}", { what: word("WaitDimension", value).toLowerCase() }),
          }))}
        />
        <Checkbox
          label={t("Compare with the range before")}
          checked={compare}
          onChange={(e) => setCompare(e.currentTarget.checked)}
        />
      </div>
      <FailureNote failure={error ? fromGraphQL(error) : null} />
      {data && rows.length === 0 && !fetching ? (
        <div className="panel">
          <Empty title={t("No session started in this range")}>
            {t("A start is counted some seconds after the session runs.")}
          </Empty>
        </div>
      ) : null}
      {rows.length > 0 ? (
        <section className="panel scroll-x" aria-label={t("Waits")} tabIndex={0}>
          <table className="grid">
            <thead>
              <tr>
                <th>{word("WaitDimension", by)}</th>
                <th className="num">{t("Starts")}</th>
                <th className="num">{t("Half within")}</th>
                {compare ? <th className="num">{t("Before")}</th> : null}
                <th className="num">{t("90 % within")}</th>
                <th className="num">{t("99 % within")}</th>
                <th className="num">{t("Longest")}</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((r) => (
                <tr key={r.keys[0]?.value}>
                  <td>{r.keys.map(nameOf).join(", ")}</td>
                  <td className="num">{r.count}</td>
                  <td className="num">{secs(r.p50)}</td>
                  {compare ? <td className="num">{secs(earlier.get(r.keys[0]?.value)?.p50 ?? null)}</td> : null}
                  <td className="num">{secs(r.p90)}</td>
                  <td className="num">{secs(r.p99)}</td>
                  <td className="num">{secs(r.max)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </section>
      ) : null}
      {(timed?.waitReport.length ?? 0) > 1 ? (
        <Figure
          plot={waitPlot(timed!.waitReport, { p50: t("Half within"), p90: t("90 % within") })}
          name={long ? t("By day") : t("By hour")}
          from={from.getTime() / 1000}
          to={to.getTime() / 1000}
        />
      ) : null}
    </div>
  );
}
