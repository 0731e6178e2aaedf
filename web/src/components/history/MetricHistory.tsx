import { SegmentedControl } from "@mantine/core";
import { lazy, Suspense, useEffect, useMemo, useState } from "react";
import { useQuery } from "urql";
import { fromGraphQL } from "../../api/errors";
import { t } from "../../i18n";
import { word } from "../../words";
import { when } from "../format";
import { Empty, FailureNote } from "../Note";
import { say } from "../session/Chart";
import { type PlotData, plotsOf, type Range, ranges, summary, type TimeSeries, TimeSeriesQuery } from "./history";
import "./history.css";

const Plot = lazy(() => import("./Plot"));

interface Props {
  subjects: string[];
  /** Names of metrics; all without it. */
  metrics?: string[];
  /** Only these lines are shown. */
  only?: (s: TimeSeries) => boolean;
  nameOf: (metric: string) => string;
  labelOf: (s: TimeSeries) => string;
  /** Order of the plots; -1 leaves one out. */
  place?: (metric: string) => number;
  /** The only range, of something that has ended. */
  fixed?: { from: string; to: string };
}

/** Shows measurements over time, with a choice of the range. */
export function MetricHistory({ subjects, metrics, only, nameOf, labelOf, place, fixed }: Props) {
  const [range, choose] = useState<Range>("1 h");
  const [now, look] = useState(Date.now);
  useEffect(() => {
    if (fixed) return;
    const timer = setInterval(() => document.visibilityState === "visible" && look(Date.now()), 60_000);
    return () => clearInterval(timer);
  }, [fixed]);
  const from = fixed?.from ?? new Date(now - ranges[range] * 1000).toISOString();
  const to = fixed?.to ?? new Date(now).toISOString();
  const [{ data, error, fetching }] = useQuery({
    query: TimeSeriesQuery,
    variables: { subjects, metrics: metrics ?? null, from, to, points: 300 },
    pause: subjects.length === 0,
  });
  const plots = useMemo(() => {
    const found = plotsOf((data?.timeSeries ?? []).filter(only ?? (() => true)), labelOf);
    const at = (p: PlotData) => place?.(p.name) ?? 0;
    return found.filter((p) => at(p) >= 0).sort((a, b) => at(a) - at(b) || a.name.localeCompare(b.name));
  }, [data, only, labelOf, place]);
  return (
    <div className="stack">
      {fixed ? null : (
        <div className="row">
          <SegmentedControl
            size="xs"
            aria-label={t("Range")}
            data={Object.keys(ranges).map((value) => ({ value, label: t(value) }))}
            value={range}
            onChange={(value) => {
              choose(value as Range);
              look(Date.now());
            }}
          />
          {fetching ? <span className="dim">{t("Loading…")}</span> : null}
        </div>
      )}
      <FailureNote failure={error ? fromGraphQL(error) : null} what={t("The history could not be loaded")} />
      {plots.length === 0 && data && !fetching ? (
        <div className="panel">
          <Empty title={t("No measurements in this range")}>{t("Measurements are kept minute by minute.")}</Empty>
        </div>
      ) : null}
      <div className="plots">
        {plots.map((p) => (
          <Figure
            key={p.name}
            plot={p}
            name={nameOf(p.name)}
            from={Date.parse(from) / 1000}
            to={Date.parse(to) / 1000}
          />
        ))}
      </div>
    </div>
  );
}

export function Figure({ plot, name, from, to }: { plot: PlotData; name: string; from: number; to: number }) {
  const unit = plot.rate ? "/s" : "";
  const text = (n: number) => say(n, plot.unit) + unit;
  return (
    <figure className="panel pad">
      <figcaption className="row">
        <b>{name}</b>
        {plot.quality === "MEASURED" ? null : <span className="dim">{word("MetricQuality", plot.quality)}</span>}
        {plot.capacity > 0 && plot.unit !== "percent" ? (
          <span className="dim push">{t("of {{capacity}}", { capacity: say(plot.capacity, plot.unit) })}</span>
        ) : null}
      </figcaption>
      <Suspense fallback={<div className="plot" />}>
        <Plot plot={plot} name={name} from={from} to={to} />
      </Suspense>
      <details>
        <summary>{t("Numbers")}</summary>
        <div className="scroll-x" tabIndex={0} role="region" aria-label={t("Numbers of {{name}}", { name })}>
          <table className="data">
            <thead>
              <tr>
                <th>{t("Line")}</th>
                <th>{t("Last")}</th>
                <th>{t("Mean")}</th>
                <th>{t("Peak")}</th>
                <th>{t("Since")}</th>
              </tr>
            </thead>
            <tbody>
              {plot.lines.map((line) => {
                const s = summary(line);
                return s ? (
                  <tr key={line.label}>
                    <td>{line.label || name}</td>
                    <td>{text(s.last)}</td>
                    <td>{text(s.mean)}</td>
                    <td>{text(s.peak)}</td>
                    <td>{when(new Date(line.at[0]! * 1000).toISOString())}</td>
                  </tr>
                ) : null;
              })}
            </tbody>
          </table>
        </div>
      </details>
    </figure>
  );
}
