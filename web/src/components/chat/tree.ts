import type { Answer, Turn } from "./chat";

/** The part of a turn that its place in the chat depends on. */
export type TreeTurn = Pick<Turn, "id" | "previous" | "createdAt">;
/** The part of an answer that its place in a turn depends on. */
export type TreeAnswer = Pick<Answer, "id" | "column" | "previous" | "createdAt" | "status" | "text">;

/** For each turn with several turns after it: the one that is shown. The key of the first turns is "". */
export type Choice = Readonly<Record<string, string>>;

const byTime = (a: TreeTurn, b: TreeTurn) =>
  a.createdAt < b.createdAt ? -1 : a.createdAt > b.createdAt ? 1 : a.id < b.id ? -1 : 1;

/** Returns the turns after each turn, the oldest first. Turns whose previous one is not loaded begin the chat. */
export function children<T extends TreeTurn>(turns: readonly T[]): Map<string, T[]> {
  const known = new Set(turns.map((turn) => turn.id));
  const after = new Map<string, T[]>();
  for (const turn of [...turns].sort(byTime)) {
    const key = turn.previous !== null && known.has(turn.previous) ? turn.previous : "";
    const list = after.get(key);
    if (list) list.push(turn);
    else after.set(key, [turn]);
  }
  return after;
}

/** Returns the choice of branches that shows a turn. Branches at other turns stay as they are. */
export function choose<T extends TreeTurn>(turns: readonly T[], choice: Choice, id: string): Choice {
  const byId = new Map(turns.map((turn) => [turn.id, turn]));
  const next: Record<string, string> = { ...choice };
  const seen = new Set<string>();
  for (let turn = byId.get(id); turn && !seen.has(turn.id); ) {
    seen.add(turn.id);
    const before: T | undefined = turn.previous === null ? undefined : byId.get(turn.previous);
    next[before?.id ?? ""] = turn.id;
    turn = before;
  }
  return next;
}

/** A turn of the path that is shown, with its branches. */
export interface Step<T> {
  turn: T;
  /** All turns with the same previous one, this one among them. */
  branches: T[];
}

/** Returns the turns that are shown, from the first one to the last one. Without a choice, the newest branch is shown. */
export function path<T extends TreeTurn>(turns: readonly T[], choice: Choice): Step<T>[] {
  const after = children(turns);
  const newest = [...turns].sort(byTime).at(-1);
  const standard = newest ? choose(turns, {}, newest.id) : {};
  const steps: Step<T>[] = [];
  const seen = new Set<string>();
  for (let key = ""; ; ) {
    const branches = after.get(key) ?? [];
    const turn =
      branches.find((b) => b.id === choice[key]) ?? branches.find((b) => b.id === standard[key]) ?? branches.at(-1);
    if (!turn || seen.has(turn.id)) return steps;
    seen.add(turn.id);
    // Turns whose previous ones are different turns that are not loaded are no branches of each other.
    steps.push({ turn, branches: key === "" ? branches.filter((b) => b.previous === turn.previous) : branches });
    key = turn.id;
  }
}

/** Returns the answers of a column, the oldest first. */
export const versions = <A extends TreeAnswer>(answers: readonly A[], column: number): A[] =>
  answers
    .filter((a) => a.column === column)
    .sort((a, b) => (a.createdAt < b.createdAt ? -1 : a.createdAt > b.createdAt ? 1 : 0));

/** For each turn and column: the answer that is shown. The key is from pickKey. */
export type Picks = Readonly<Record<string, string>>;
export const pickKey = (turn: string, column: number) => `${turn}/${column}`;

/**
 * Returns the answer of a column that is shown: the picked one, the one that the next turn continued with, or the
 * newest one.
 */
export function shown<A extends TreeAnswer>(
  turn: { id: string; answers: readonly A[] },
  column: number,
  picks: Picks,
  next?: { answers: readonly TreeAnswer[] },
): A | undefined {
  const all = versions(turn.answers, column);
  const picked = all.find((a) => a.id === picks[pickKey(turn.id, column)]);
  if (picked) return picked;
  const continued = next ? versions(next.answers, column).at(-1)?.previous : null;
  return all.find((a) => a.id === continued) ?? all.at(-1);
}

/** Returns with which answers the next prompt continues: those that are shown and have a text. */
export function continuation<A extends TreeAnswer>(
  turn: { id: string; answers: readonly A[] },
  columns: readonly number[],
  picks: Picks,
): { column: number; answer: string }[] {
  return columns.flatMap((column) => {
    const answer = shown(turn, column, picks);
    return answer && answer.text !== "" ? [{ column, answer: answer.id }] : [];
  });
}

/** Returns the columns of a turn: those of the chat, and removed ones that have an answer. */
export function columnsOf(turn: { answers: readonly { column: number }[] }, columns: readonly number[]): number[] {
  const more = turn.answers.map((a) => a.column).filter((c) => !columns.includes(c));
  return [...columns, ...[...new Set(more)].sort((a, b) => a - b)];
}

/**
 * Returns the columns that get the next prompt of a path: those that answered the last one, and new ones. A column that
 * was left out has not seen what was said since, so it stays out.
 */
export function targets(
  steps: readonly { turn: { answers: readonly { column: number }[] } }[],
  columns: readonly number[],
): number[] {
  const last = steps.at(-1)?.turn;
  if (!last) return [...columns];
  const answered = (turn: { answers: readonly { column: number }[] }, c: number) =>
    turn.answers.some((a) => a.column === c);
  const left = columns.filter((c) => answered(last, c) || !steps.some((s) => answered(s.turn, c)));
  return left.length > 0 ? left : [...columns];
}
