import { useComputedColorScheme } from "@mantine/core";
import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { say } from "../session/Chart";
import type { PlotData } from "./history";

/** Colours that people with any kind of colour blindness can distinguish (Okabe and Ito). */
const colours = {
  light: ["#0072b2", "#b35900", "#007a5a", "#a3487f", "#2b7fa8", "#8a6d00"],
  dark: ["#56b4e9", "#e69f00", "#2fc99a", "#dd94bd", "#9ad0f5", "#f0e442"],
};

interface Props {
  plot: PlotData;
  name: string;
  /** The shown range in seconds since 1970. */
  from: number;
  to: number;
}

const height = 150;

/** Distances of the marks of an axis with bytes. */
const powers = Array.from({ length: 52 }, (_, i) => 2 ** i);

/** Draws one metric over time. The figure around it has the numbers. */
export default function Plot({ plot, name, from, to }: Props) {
  const place = useRef<HTMLDivElement>(null);
  const scheme = useComputedColorScheme("light");
  useEffect(() => {
    const root = place.current;
    if (!root) return;
    const chart = new uPlot(options(plot, scheme, from, to, root.clientWidth), dataOf(plot), root);
    const watcher = new ResizeObserver(() => chart.setSize({ width: root.clientWidth, height }));
    watcher.observe(root);
    return () => {
      watcher.disconnect();
      chart.destroy();
    };
  }, [plot, scheme, from, to]);
  return <div ref={place} className="plot" role="img" aria-label={name} />;
}

/** Aligns the lines, each with its band. */
function dataOf(plot: PlotData): uPlot.AlignedData {
  const tables = plot.lines.map(
    (l) => [l.at, l.value, ...(l.low.length > 0 ? [l.low, l.high] : [])] as unknown as uPlot.AlignedData,
  );
  // Nulls stay gaps; where only another line has a point, a line is drawn through.
  return uPlot.join(
    tables,
    tables.map((t) => t.map(() => 2)),
  );
}

/** How the marks of the time axis are written: the smallest distance, the text, and what is added where the day changes. */
function times(): uPlot.Axis.Values {
  const [minute, hour, day, year] = [60, 3600, 86_400, 31_536_000];
  const date = "\n{YYYY}-{MM}-{DD}";
  return [
    [year, "{YYYY}", null, null, null, null, null, null, 1],
    [day, "{MM}-{DD}", "\n{YYYY}", null, null, null, null, null, 1],
    [hour, "{HH}:{mm}", date, null, date, null, null, null, 1],
    [minute, "{HH}:{mm}", date, null, date, null, null, null, 1],
    [1, "{HH}:{mm}:{ss}", date, null, date, null, null, null, 1],
  ];
}

function options(plot: PlotData, scheme: "light" | "dark", from: number, to: number, width: number): uPlot.Options {
  const style = getComputedStyle(document.documentElement);
  const text = style.getPropertyValue("--dim");
  const grid = { stroke: style.getPropertyValue("--line"), width: 1 };
  const ceiling = plot.unit === "percent" && !plot.rate ? 100 : 0;
  const series: uPlot.Series[] = [{}];
  const bands: uPlot.Band[] = [];
  plot.lines.forEach((line, i) => {
    const colour = colours[scheme][i % colours[scheme].length]!;
    const dash = i >= colours[scheme].length ? [6, 3] : undefined;
    series.push({
      label: line.label,
      stroke: colour,
      width: 1.5,
      dash,
      points: { show: line.at.length < 3 },
      spanGaps: false,
    });
    if (line.low.length === 0) return;
    const at = series.length;
    series.push({ stroke: "transparent", points: { show: false } }, { stroke: "transparent", points: { show: false } });
    bands.push({ series: [at + 1, at], fill: `${colour}2e` });
  });
  return {
    width,
    height,
    legend: { show: false },
    cursor: { y: false, drag: { x: false, y: false } },
    scales: {
      x: { min: from, max: to },
      y: { range: (_, __, max) => [0, Math.max(max * 1.08, ceiling, plot.unit === "bytes" ? 1024 : 1)] },
    },
    axes: [
      { stroke: text, grid, ticks: grid, font: "11px sans-serif", values: times() },
      {
        stroke: text,
        grid,
        ticks: grid,
        font: "11px sans-serif",
        size: 68,
        space: 34,
        ...(plot.unit === "bytes" ? { incrs: powers } : {}),
        values: (_, values) => values.map((v) => say(v, plot.unit) + (plot.rate && v > 0 ? "/s" : "")),
      },
    ],
    series,
    bands,
  };
}
