import { afterEach, beforeEach, expect, it, vi } from "vitest";
import type { Answer, Turn } from "./chat";
import { noParameters } from "./params";
import { ChatStore } from "./store";

beforeEach(() => void vi.useFakeTimers());
afterEach(() => void vi.useRealTimers());

const answer = (more: Partial<Answer> = {}): Answer => ({
  id: "a",
  turn: "t",
  column: 0,
  previous: null,
  status: "RUNNING",
  message: "",
  cost: null,
  text: "",
  reasoning: "",
  revision: null,
  createdAt: "2026-01-01T00:00:00Z",
  endedAt: null,
  model: null,
  parameters: noParameters,
  session: null,
  metrics: null,
  ...more,
});
const turn = (answers: Answer[], id = "t"): Turn => ({
  id,
  previous: null,
  prompt: "p",
  createdAt: "2026-01-01T00:00:00Z",
  attachments: [],
  answers,
  votes: [],
});
const delta = (textAt: number, text: string) => ({ answer: "a", textAt, text, reasoningAt: 0, reasoning: "" });

function opened(first = answer()) {
  const gap = vi.fn();
  const store = new ChatStore(gap);
  store.addTurns([turn([first])]);
  return { store, gap };
}

it("renders many deltas once in 100 ms, and only at their answer", () => {
  const { store } = opened();
  const own = vi.fn();
  const all = vi.fn();
  store.subscribeAnswer("a", own);
  store.subscribe(all);
  for (let n = 0; n < 50; n++) store.addDelta(delta(n, "x"));
  expect(own).not.toHaveBeenCalled();
  vi.advanceTimersByTime(100);
  expect(own).toHaveBeenCalledTimes(1);
  expect(all).not.toHaveBeenCalled();
  expect(store.answer("a")?.text).toBe("x".repeat(50));
});

it("replaces the text from the place that a delta names", () => {
  const { store, gap } = opened(answer({ text: "Hello world" }));
  store.addDelta(delta(6, "there"));
  expect(store.latest("a")?.text).toBe("Hello there");
  expect(gap).not.toHaveBeenCalled();
});

it("asks for the chat again after a missed delta", () => {
  const { store, gap } = opened();
  store.addDelta(delta(5, "x"));
  expect(gap).toHaveBeenCalledOnce();
  expect(store.latest("a")?.text).toBe("");
});

it("keeps the newer state when a query returns an older one", () => {
  const { store } = opened();
  store.addDelta(delta(0, "more"));
  store.addTurns([turn([answer({ text: "mo" })])]);
  expect(store.latest("a")?.text).toBe("more");
  store.setAnswer(answer({ status: "DONE", text: "more." }));
  store.addTurns([turn([answer({ text: "more" })])]);
  store.setAnswer(answer({ status: "WAITING" }));
  store.addDelta(delta(0, "late"));
  expect(store.latest("a")).toMatchObject({ status: "DONE", text: "more." });
});

it("adds an answer that began elsewhere to its turn", () => {
  const { store } = opened();
  store.setAnswer(answer({ id: "b", column: 1 }));
  expect(store.shown().turns[0]!.answers.map((a) => a.id)).toEqual(["a", "b"]);
});

it("begins again with the newest page if turns between are missing", () => {
  const { store } = opened();
  const newest = { ...turn([], "far"), createdAt: "2027-01-01T00:00:00Z" };
  const page = { totalCount: 90, pageInfo: { hasPreviousPage: true, startCursor: "c" }, edges: [{ node: newest }] };
  store.addPage(page, false);
  expect(store.shown()).toMatchObject({ total: 90, before: "c" });
  expect(store.shown().turns.map((one) => one.id)).toEqual(["far"]);
  store.addPage(page, false);
  expect(store.shown().turns.map((one) => one.id)).toEqual(["far"]);
});

it("adds earlier turns before the loaded ones", () => {
  const { store } = opened();
  const page = (previous: boolean, ids: string[]) => ({
    totalCount: 3,
    pageInfo: { hasPreviousPage: previous, startCursor: "c" },
    edges: ids.map((id) => ({ node: { ...turn([], id), createdAt: `2025-01-01T00:00:0${id}Z` } })),
  });
  store.addPage(page(false, ["1", "2"]), true);
  expect(store.shown()).toMatchObject({ total: 3, before: null });
  expect(store.shown().turns.map((one) => one.id)).toEqual(["1", "2", "t"]);
});
