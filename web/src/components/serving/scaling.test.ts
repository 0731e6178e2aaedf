import { expect, test } from "vitest";
import {
  checkScaling,
  checkStrategy,
  parseSteps,
  scalingDraft,
  scalingInput,
  strategyDraft,
  strategyInput,
} from "./scaling";
import type { Scaling, Strategy } from "./serving";

const scaling = {
  min: 0,
  max: 4,
  zeroAfter: 900,
  upAfter: 30,
  downAfter: 300,
  targets: [
    { metric: "requests", perReplica: 8, sum: true },
    { metric: "vllm:x", perReplica: 0.5, sum: false },
  ],
  schedules: [{ from: "08:00", to: "18:00", days: [5, 1], timeZone: "", replicas: 2 }],
} as unknown as Scaling;
const strategy = {
  kind: "CANARY",
  maxSurge: 1,
  maxUnavailable: 0,
  autoPromote: false,
  promoteAfter: 60,
  steps: [10, 50],
  stepTime: 120,
  deadline: 3600,
} as unknown as Strategy;

test("what is read is what is sent", () => {
  const draft = scalingDraft(scaling, 2);
  expect(checkScaling(draft)).toEqual({});
  expect(scalingInput(draft)).toEqual({
    min: 0,
    max: 4,
    zeroAfter: 900,
    upAfter: 30,
    downAfter: 300,
    targets: [
      { metric: "requests", perReplica: 8 },
      { metric: "vllm:x", perReplica: 0.5, sum: false },
    ],
    schedules: [{ from: "08:00", to: "18:00", days: [1, 5], timeZone: "UTC", replicas: 2 }],
  });
});

test("wrong values are named by field", () => {
  const draft = scalingDraft(scaling, 2);
  const wrong = (more: object) => Object.keys(checkScaling({ ...draft, ...more }));
  expect(wrong({ min: "", replicas: 1.5 })).toEqual(["replicas", "min"]);
  expect(wrong({ max: 0 })).toEqual(["max"]);
  expect(wrong({ min: 9 })).toEqual(["max"]);
  expect(wrong({ zeroAfter: "soon" })).toEqual(["zeroAfter"]);
  expect(wrong({ targets: [{ key: 0, metric: " ", perReplica: 1, sum: false }] })).toEqual(["targets"]);
  expect(wrong({ targets: [{ key: 0, metric: "x", perReplica: 0, sum: false }] })).toEqual(["targets"]);
  expect(wrong({ schedules: [{ ...draft.schedules[0], from: "8" }] })).toEqual(["schedules"]);
});

test("a strategy sends the fields of its kind", () => {
  const draft = strategyDraft(strategy);
  expect(strategyInput(draft)).toEqual({ kind: "CANARY", deadline: 3600, steps: [10, 50], stepTime: 120 });
  expect(strategyInput({ ...draft, kind: "BLUE_GREEN" })).toEqual({
    kind: "BLUE_GREEN",
    deadline: 3600,
    autoPromote: false,
    promoteAfter: 60,
  });
  expect(strategyInput({ ...draft, kind: "ROLLING" })).toEqual({
    kind: "ROLLING",
    deadline: 3600,
    maxSurge: 1,
    maxUnavailable: 0,
  });
  expect(Object.keys(checkStrategy({ ...draft, steps: "50, 10", deadline: "x" }))).toEqual(["deadline", "steps"]);
  expect(checkStrategy({ ...draft, kind: "ROLLING", steps: "" })).toEqual({});
});

test("steps grow and stay below 100", () => {
  expect(parseSteps("5%, 25 50")).toEqual([5, 25, 50]);
  for (const bad of ["", "0", "10, 10", "50, 10", "100", "1.5", "many"]) expect(parseSteps(bad), bad).toBeNull();
});
