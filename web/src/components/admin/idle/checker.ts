import { graphql, type ResultOf } from "../../../api/graphql";
import { words } from "../../../words";
import { parseTime, printTime } from "../rules/amounts";

export const CheckerFields = graphql(`
  fragment CheckerFields on IdleChecker {
    id name description kind enabled timeout grace newUserGrace warning match sessionTypes ignoredApps
    thresholds { slot percent }
    bindings { id everywhere domain { id name } project { id name } resourceGroup { id name } }
  }
`);
export type Checker = ResultOf<typeof CheckerFields>;
export type Binding = Checker["bindings"][number];

/** The kinds of checkers. */
export const checkerKinds = [
  {
    value: "NETWORK",
    label: words.IdleKind.NETWORK,
    help: "No terminal is open, no command runs, and the ports have no traffic.",
    timeout: "Time without activity",
  },
  {
    value: "UTILIZATION",
    label: words.IdleKind.UTILIZATION,
    help: "The average utilization of its slots is low.",
    timeout: "Time window",
  },
  {
    value: "MEMORY",
    label: words.IdleKind.MEMORY,
    help: "The memory of its accelerators is almost empty.",
    timeout: "Time window",
  },
  {
    value: "LIFETIME",
    label: words.IdleKind.LIFETIME,
    help: "The session has run for the given time, whether it is used or not.",
    timeout: "Maximum age",
  },
] as const;

export const kindOf = (kind: string) => checkerKinds.find((k) => k.value === kind) ?? checkerKinds[0];
export const measures = (kind: string) => kind === "UTILIZATION" || kind === "MEMORY";

const times = {
  timeout: { usual: "1 h", least: 60 },
  grace: { usual: "0", least: 0 },
  newUserGrace: { usual: "0", least: 0 },
  warning: { usual: "5 min", least: 0 },
} as const;
export type Time = keyof typeof times;
const year = 365 * 86_400;

/** The form state of a checker. */
export interface Draft {
  name: string;
  description: string;
  kind: Checker["kind"];
  enabled: boolean;
  times: Record<Time, string>;
  match: Checker["match"];
  thresholds: { slot: string; percent: number | string }[];
  sessionTypes: Checker["sessionTypes"];
  ignoredApps: string;
}

export function draftOf(c: Checker | null): Draft {
  const text = (time: Time) => (c ? printTime(c[time]) : times[time].usual);
  return {
    name: c?.name ?? "",
    description: c?.description ?? "",
    kind: c?.kind ?? "NETWORK",
    enabled: c?.enabled ?? true,
    times: {
      timeout: text("timeout"),
      grace: text("grace"),
      newUserGrace: text("newUserGrace"),
      warning: text("warning"),
    },
    match: c?.match ?? "ALL",
    thresholds: c && c.thresholds.length > 0 ? c.thresholds.map((x) => ({ ...x })) : [{ slot: "cpu", percent: 5 }],
    sessionTypes: [...(c?.sessionTypes ?? ["INTERACTIVE"])],
    ignoredApps: c?.ignoredApps.join(", ") ?? "",
  };
}

/** Returns the input for the server, and the errors as phrases to translate. */
export function readDraft(draft: Draft) {
  const wrong: Record<string, [key: string, values?: Record<string, string>]> = {};
  const read = (time: Time, most: number) => {
    const n = parseTime(draft.times[time]);
    const { least } = times[time];
    if (n === null) wrong[time] = ["Enter a time such as 10min, 12h or 7d."];
    else if (n < least || n > most)
      wrong[time] = ["Enter a value from {{least}} to {{most}}.", { least: printTime(least), most: printTime(most) }];
    return n ?? 0;
  };
  if (draft.sessionTypes.length === 0) wrong.sessionTypes = ["Choose at least one."];
  const thresholds = draft.thresholds
    .filter((x) => x.slot.trim())
    .map((x) => ({ slot: x.slot.trim(), percent: Number(x.percent) }));
  if (measures(draft.kind) && thresholds.length === 0) wrong.thresholds = ["Choose at least one."];
  else if (measures(draft.kind) && thresholds.some((x) => !(x.percent >= 0 && x.percent <= 100)))
    wrong.thresholds = ["Enter a value from {{least}} to {{most}}.", { least: "0 %", most: "100 %" }];
  const timeout = read("timeout", year);
  const input = {
    name: draft.name.trim(),
    description: draft.description.trim(),
    enabled: draft.enabled,
    timeout,
    grace: read("grace", year),
    newUserGrace: read("newUserGrace", year),
    warning: read("warning", wrong.timeout ? year : timeout),
    match: draft.match,
    thresholds: measures(draft.kind) ? thresholds : [],
    sessionTypes: draft.sessionTypes,
    ignoredApps: draft.kind === "NETWORK" ? draft.ignoredApps.split(/[\s,]+/).filter(Boolean) : [],
  };
  return { input, wrong };
}

/** Returns the rule of a checker as a short phrase to translate. */
export function rulePhrase(c: Checker): [key: string, values: Record<string, string>] {
  const time = printTime(c.timeout);
  if (c.kind === "LIFETIME") return ["runs for {{time}}", { time }];
  if (c.kind === "NETWORK") return ["unused for {{time}}", { time }];
  const join = c.match === "ALL" ? " + " : " / ";
  return ["{{slots}} over {{time}}", { slots: c.thresholds.map((x) => `${x.slot} ≤ ${x.percent} %`).join(join), time }];
}
