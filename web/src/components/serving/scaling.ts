import { parseTime, printTime } from "../admin/rules/amounts";
import type { Scaling, Strategy } from "./serving";

/** The metrics that every deployment has. */
export const usualMetrics = ["requests", "waiting", "requestRate", "tokenRate"] as const;

/** English names of the days of the week, from Sunday. */
export const weekdays = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"] as const;

/** Scaling as it is typed. Every row of a list has a key of its own. */
export interface ScalingDraft {
  replicas: number | string;
  min: number | string;
  max: number | string;
  zeroAfter: string;
  upAfter: string;
  downAfter: string;
  targets: { key: number; metric: string; perReplica: number | string; sum: boolean }[];
  schedules: {
    key: number;
    from: string;
    to: string;
    days: number[];
    timeZone: string;
    replicas: number | string;
  }[];
}

export const scalingDraft = (s: Scaling, wanted: number): ScalingDraft => ({
  replicas: wanted,
  min: s.min,
  max: s.max,
  zeroAfter: printTime(s.zeroAfter),
  upAfter: printTime(s.upAfter),
  downAfter: printTime(s.downAfter),
  targets: s.targets.map((x, key) => ({ ...x, key })),
  schedules: s.schedules.map((x, key) => ({ ...x, days: [...x.days], key })),
});

type Wrong = Record<string, string>;

const whole = (value: number | string) => value !== "" && Number.isInteger(Number(value)) && Number(value) >= 0;

/** Returns the errors that can be found without the server, by field. */
export function checkScaling(d: ScalingDraft): Wrong {
  const wrong: Wrong = {};
  for (const field of ["replicas", "min", "max"] as const) if (!whole(d[field])) wrong[field] = "Enter a whole number.";
  if (!wrong.min && !wrong.max && Number(d.max) < Math.max(1, Number(d.min)))
    wrong.max = "The maximum must be at least 1, and not below the minimum.";
  for (const field of ["zeroAfter", "upAfter", "downAfter"] as const)
    if (parseTime(d[field]) === null) wrong[field] = "Enter a time such as 30s, 15min or 2h.";
  if (d.targets.some((x) => !x.metric.trim() || !(Number(x.perReplica) > 0)))
    wrong.targets = "Every target needs a metric and a number above 0.";
  if (d.schedules.some((x) => !/^\d\d:\d\d$/.test(x.from) || !/^\d\d:\d\d$/.test(x.to) || !(Number(x.replicas) > 0)))
    wrong.schedules = "Every schedule needs two times and a number of replicas above 0.";
  return wrong;
}

/** Returns the input for a draft without errors. */
export const scalingInput = (d: ScalingDraft) => ({
  min: Number(d.min),
  max: Number(d.max),
  zeroAfter: parseTime(d.zeroAfter),
  upAfter: parseTime(d.upAfter),
  downAfter: parseTime(d.downAfter),
  targets: d.targets.map((x) => ({
    metric: x.metric.trim(),
    perReplica: Number(x.perReplica),
    ...(usual(x.metric) ? {} : { sum: x.sum }),
  })),
  schedules: d.schedules.map((x) => ({
    from: x.from,
    to: x.to,
    days: [...x.days].sort(),
    timeZone: x.timeZone.trim() || "UTC",
    replicas: Number(x.replicas),
  })),
});

/** Reports whether a metric is one that every deployment has; those are always sums. */
export const usual = (metric: string) => (usualMetrics as readonly string[]).includes(metric.trim());

/** A strategy as it is typed. */
export interface StrategyDraft {
  kind: Strategy["kind"];
  maxSurge: number | string;
  maxUnavailable: number | string;
  autoPromote: boolean;
  promoteAfter: string;
  steps: string;
  stepTime: string;
  deadline: string;
}

export const strategyDraft = (s: Strategy): StrategyDraft => ({
  ...s,
  promoteAfter: printTime(s.promoteAfter),
  steps: s.steps.join(", "),
  stepTime: printTime(s.stepTime),
  deadline: printTime(s.deadline),
});

/** Reads growing percentages such as "10, 50"; null for anything else. */
export function parseSteps(text: string): number[] | null {
  const steps = text.split(/[,\s]+/).flatMap((w) => (w ? [Number(w.replace(/%$/, ""))] : []));
  const fine = steps.every((n, i) => Number.isInteger(n) && n > (steps[i - 1] ?? 0) && n < 100);
  return fine && steps.length > 0 ? steps : null;
}

export function checkStrategy(d: StrategyDraft): Wrong {
  const wrong: Wrong = {};
  const time = (field: "promoteAfter" | "stepTime" | "deadline") => {
    if (parseTime(d[field]) === null) wrong[field] = "Enter a time such as 30s, 15min or 2h.";
  };
  time("deadline");
  if (d.kind === "ROLLING")
    for (const field of ["maxSurge", "maxUnavailable"] as const)
      if (!whole(d[field])) wrong[field] = "Enter a whole number.";
  if (d.kind === "BLUE_GREEN") time("promoteAfter");
  if (d.kind === "CANARY") {
    time("stepTime");
    if (!parseSteps(d.steps)) wrong.steps = "Enter growing percentages below 100, such as 10, 50.";
  }
  return wrong;
}

/** Returns the input for a draft without errors: the kind, and the fields that the form shows for it. */
export const strategyInput = (d: StrategyDraft) => ({
  kind: d.kind,
  deadline: parseTime(d.deadline),
  ...(d.kind === "ROLLING" ? { maxSurge: Number(d.maxSurge), maxUnavailable: Number(d.maxUnavailable) } : {}),
  ...(d.kind === "BLUE_GREEN" ? { autoPromote: d.autoPromote, promoteAfter: parseTime(d.promoteAfter) } : {}),
  ...(d.kind === "CANARY" ? { steps: parseSteps(d.steps), stepTime: parseTime(d.stepTime) } : {}),
});
