import { expect, it } from "vitest";
import { draftOf, readDraft, rulePhrase } from "./checker";

it("sends thresholds only for measured slots", () => {
  const draft = { ...draftOf(null), name: " gpu " };
  expect(readDraft(draft).input).toMatchObject({ name: "gpu", timeout: 3600, warning: 300, thresholds: [] });
  expect(readDraft({ ...draft, kind: "UTILIZATION" }).input.thresholds).toEqual([{ slot: "cpu", percent: 5 }]);
});

it("returns an error for each invalid field", () => {
  const draft = draftOf(null);
  const { wrong } = readDraft({
    ...draft,
    kind: "MEMORY",
    thresholds: [{ slot: "cuda", percent: 101 }],
    sessionTypes: [],
    times: { ...draft.times, timeout: "1 min", warning: "2 min", grace: "x" },
  });
  expect(Object.keys(wrong).sort()).toEqual(["grace", "sessionTypes", "thresholds", "warning"]);
  expect(wrong.warning).toEqual(["Enter a value from {{least}} to {{most}}.", { least: "0 s", most: "1 min" }]);
});

it("describes the rule of a checker", () => {
  const base = {
    id: "1",
    name: "a",
    description: "",
    enabled: true,
    timeout: 7200,
    grace: 0,
    newUserGrace: 0,
    warning: 0,
    sessionTypes: [],
    ignoredApps: [],
    bindings: [],
  };
  expect(rulePhrase({ ...base, kind: "NETWORK", match: "ALL", thresholds: [] })).toEqual([
    "unused for {{time}}",
    { time: "2 h" },
  ]);
  expect(
    rulePhrase({
      ...base,
      kind: "UTILIZATION",
      match: "ANY",
      thresholds: [
        { slot: "cpu", percent: 5 },
        { slot: "cuda", percent: 1.5 },
      ],
    }),
  ).toEqual(["{{slots}} over {{time}}", { slots: "cpu ≤ 5 % / cuda ≤ 1.5 %", time: "2 h" }]);
});
