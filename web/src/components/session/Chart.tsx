import { word } from "../../words";
import { bytes, trim } from "../format";
import { isCounter, rates, type Series } from "./series";

export function say(value: number, unit: string): string {
  if (unit === "bytes") return bytes(value);
  if (unit === "percent") return `${trim(value.toFixed(1))} %`;
  if (unit === "celsius") return `${Math.round(value)} °C`;
  if (unit === "mhz") return `${Math.round(value)} MHz`;
  if (unit === "watt") return `${Math.round(value)} W`;
  return trim(value.toFixed(value < 10 ? 1 : 0)) + (unit === "count" || !unit ? "" : ` ${unit}`);
}

interface Props {
  series: Series;
  name: string;
  /** Shows the quality of the values even if they are measured. */
  showQuality?: boolean;
}

/** Charts the values of one metric since the page was opened. */
export function Chart({ series, name, showQuality }: Props) {
  const counter = isCounter(series.name);
  const points = counter ? rates(series.points) : series.points;
  const last = points.at(-1);
  const ceiling = Math.max(
    counter ? 0 : series.capacity,
    series.unit === "percent" && !counter ? 100 : 0,
    ...points.map((p) => p.value),
    1e-9,
  );
  const from = points[0]?.at ?? 0;
  const span = Math.max(1, (last?.at ?? 1) - from);
  const at = (p: { at: number; value: number }) => `${((p.at - from) / span) * 300},${62 - (p.value / ceiling) * 58}`;
  const line = points.map(at).join(" ");
  const value = last ? say(last.value, series.unit) + (counter ? "/s" : "") : "–";
  return (
    <figure className="panel pad" style={{ margin: 0 }}>
      <figcaption className="row">
        <span>{name}</span>
        {showQuality || series.quality !== "MEASURED" ? (
          <span className="dim">{word("MetricQuality", series.quality)}</span>
        ) : null}
        <b className="push">{value}</b>
        {series.capacity > 0 && !counter && series.unit !== "percent" ? (
          <span className="dim">/ {say(series.capacity, series.unit)}</span>
        ) : null}
      </figcaption>
      <svg
        className="spark"
        viewBox="0 0 300 64"
        preserveAspectRatio="none"
        role="img"
        aria-label={`${name}: ${value}`}
      >
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
