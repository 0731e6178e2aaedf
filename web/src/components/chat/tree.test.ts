import { expect, it } from "vitest";
import { choose, columnsOf, continuation, path, shown, type TreeAnswer, targets } from "./tree";

const turn = (id: string, previous: string | null, at: number) => ({
  id,
  previous,
  createdAt: `2026-01-01T00:00:${String(at).padStart(2, "0")}Z`,
  answers: [] as TreeAnswer[],
});
const answer = (id: string, column: number, at: number, more: Partial<TreeAnswer> = {}): TreeAnswer => ({
  id,
  column,
  previous: null,
  createdAt: `2026-01-01T00:01:${String(at).padStart(2, "0")}Z`,
  status: "DONE",
  text: "text",
  ...more,
});
const ids = (turns: ReturnType<typeof turn>[], choice = {}) => path(turns, choice).map((s) => s.turn.id);

//   a ── b ── c
//    └── d ── e      and f, another first prompt
const tree = [
  turn("a", null, 1),
  turn("b", "a", 2),
  turn("c", "b", 3),
  turn("f", null, 4),
  turn("d", "a", 5),
  turn("e", "d", 6),
];

it("shows the newest branch", () => expect(ids(tree)).toEqual(["a", "d", "e"]));
it("shows the chosen branch to its end", () => {
  expect(ids(tree, choose(tree, {}, "b"))).toEqual(["a", "b", "c"]);
  expect(ids(tree, choose(tree, {}, "f"))).toEqual(["f"]);
});
it("names the branches of each turn", () =>
  expect(path(tree, {}).map((s) => s.branches.map((b) => b.id))).toEqual([["a", "f"], ["b", "d"], ["e"]]));
it("keeps other choices", () => {
  const choice = choose(tree, choose(tree, {}, "b"), "f");
  expect(ids(tree, choose(tree, choice, "a"))).toEqual(["a", "b", "c"]);
});
it("begins with the first loaded turn", () => {
  const loaded = tree.filter((x) => ["b", "c", "d", "e"].includes(x.id));
  expect(ids(loaded)).toEqual(["d", "e"]);
  expect(path(loaded, {})[0]!.branches.map((b) => b.id)).toEqual(["b", "d"]);
  expect(ids(tree.filter((x) => x.id === "c" || x.id === "e"))).toEqual(["e"]);
});
it("ends when turns name each other", () => expect(ids([turn("x", "y", 1), turn("y", "x", 2)]).length).toBeLessThan(3));

it("shows the newest answer, the picked one, or the one that the next turn continued", () => {
  const t = { id: "t", answers: [answer("2", 0, 2), answer("1", 0, 1), answer("3", 1, 3)] };
  expect(shown(t, 0, {})?.id).toBe("2");
  expect(shown(t, 0, { "t/0": "1" })?.id).toBe("1");
  expect(shown(t, 0, {}, { answers: [answer("4", 0, 4, { previous: "1" })] })?.id).toBe("1");
  expect(shown(t, 2, {})).toBeUndefined();
});

it("continues with the shown answers that have a text", () => {
  const t = { id: "t", answers: [answer("1", 0, 1), answer("2", 0, 2), answer("3", 1, 3, { text: "" })] };
  expect(continuation(t, [0, 1], { "t/0": "1" })).toEqual([{ column: 0, answer: "1" }]);
});

it("puts removed columns to the right", () =>
  expect(columnsOf({ answers: [{ column: 7 }, { column: 3 }, { column: 1 }, { column: 3 }] }, [2, 1])).toEqual([
    2, 1, 3, 7,
  ]));

it("asks the columns that answered last, and new ones", () => {
  const steps = [{ turn: { answers: [{ column: 0 }, { column: 1 }] } }, { turn: { answers: [{ column: 1 }] } }];
  expect(targets(steps, [0, 1, 2])).toEqual([1, 2]);
  expect(targets([], [0, 1])).toEqual([0, 1]);
  expect(targets(steps, [0])).toEqual([0]);
});
