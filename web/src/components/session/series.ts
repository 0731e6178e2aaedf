import type { words } from "../../words";

/** Whether a sample is measured, estimated or unavailable. */
export type Quality = keyof typeof words.MetricQuality;

export interface Sample {
  name: string;
  deviceId: string;
  value: number;
  capacity: number;
  unit: string;
  quality: Quality;
}

export interface Series {
  key: string;
  name: string;
  deviceId: string;
  unit: string;
  capacity: number;
  quality: Quality;
  points: { at: number; value: number }[];
}

/** The number of kept samples: half an hour at the default interval of agents. */
export const keepPoints = 360;

/** Adds one round of samples of a container. Metrics can appear and disappear. */
export function extend(series: readonly Series[], kernel: string, at: number, samples: readonly Sample[]): Series[] {
  const next = new Map(series.map((s) => [s.key, s]));
  for (const m of samples) {
    if (m.quality === "UNAVAILABLE") continue;
    const key = `${kernel} ${m.name} ${m.deviceId}`;
    const known = next.get(key);
    const last = known?.points.at(-1);
    if (last && last.at >= at) continue;
    next.set(key, {
      key,
      name: m.name,
      deviceId: m.deviceId,
      unit: m.unit,
      capacity: m.capacity,
      quality: m.quality,
      points: [...(known?.points ?? []), { at, value: m.value }].slice(-keepPoints),
    });
  }
  return [...next.values()];
}

/** Reports whether a metric is a counter, which is shown as its increase per second. */
export const isCounter = (name: string) => /^(net|io)_|_ms$/.test(name);

export function rates(points: Series["points"]): Series["points"] {
  return points.slice(1).map((p, i) => {
    const before = points[i]!;
    const seconds = Math.max(0.001, (p.at - before.at) / 1000);
    // A counter that decreases was reset.
    return { at: p.at, value: Math.max(0, p.value - before.value) / seconds };
  });
}
