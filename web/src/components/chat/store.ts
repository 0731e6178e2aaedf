import { type Answer, type Chat, type Delta, runs, type Turn } from "./chat";

/** Milliseconds between two renderings of answers that grow. */
const renderEvery = 100;

/** What a page shows of a chat. Each change makes a new object. */
export interface Shown {
  chat: Chat | null;
  /** The loaded turns, the oldest first. */
  turns: readonly Turn[];
  /** The number of turns of the chat. */
  total: number;
  /** Cursor of the turns before the loaded ones; null: there are none. */
  before: string | null;
}

/** A page of turns as the API returns it. */
export interface TurnPage {
  totalCount: number;
  pageInfo: { hasPreviousPage: boolean; startCursor: unknown };
  edges: readonly ({ node: Turn | null } | null)[] | null;
}

const rank = (a: Answer) => (a.status === "WAITING" ? 0 : a.status === "RUNNING" ? 1 : 2);

/** Returns the newer state of an answer: a query can return an older state than the one that was pushed before. */
function newer(old: Answer | undefined, read: Answer): Answer {
  if (!old || rank(read) > rank(old)) return read;
  if (rank(read) < rank(old)) return old;
  if (rank(read) === 1 && old.text.length + old.reasoning.length > read.text.length + read.reasoning.length) return old;
  return read;
}

/** Returns an answer with a delta; null if an earlier delta is missing. */
export function apply(answer: Answer, delta: Delta): Answer | null {
  if (delta.textAt > answer.text.length || delta.reasoningAt > answer.reasoning.length) return null;
  return {
    ...answer,
    text: answer.text.slice(0, delta.textAt) + delta.text,
    reasoning: answer.reasoning.slice(0, delta.reasoningAt) + delta.reasoning,
  };
}

/**
 * Keeps an open chat. Growing answers change many times a second: their listeners are called at most once in 100 ms, and
 * only those of the answers that changed.
 */
export class ChatStore {
  private now: Shown = { chat: null, turns: [], total: 0, before: null };
  private readonly answers = new Map<string, Answer>();
  /** Newer states of answers that are not shown yet. */
  private readonly growing = new Map<string, Answer>();
  private readonly listeners = new Set<() => void>();
  private readonly answerListeners = new Map<string, Set<() => void>>();
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** @param onGap is called when an update was missed, so that the chat must be read again. */
  constructor(private readonly onGap: () => void) {}

  readonly subscribe = (listener: () => void) => {
    this.listeners.add(listener);
    return () => void this.listeners.delete(listener);
  };

  subscribeAnswer(id: string, listener: () => void) {
    const set = this.answerListeners.get(id) ?? new Set();
    this.answerListeners.set(id, set.add(listener));
    return () => void set.delete(listener);
  }

  readonly shown = () => this.now;
  readonly answer = (id: string): Answer | undefined => this.answers.get(id);

  /** Sets what a query or a mutation returned about the chat itself. */
  setChat(chat: Chat) {
    this.now = { ...this.now, chat };
    this.notify();
  }

  /** Adds the newest turns, or those before the loaded ones. */
  addPage(page: TurnPage, older: boolean) {
    const read = (page.edges ?? []).flatMap((e) => (e?.node ? [e.node] : []));
    const cursor = page.pageInfo.hasPreviousPage ? String(page.pageInfo.startCursor) : null;
    // After a long absence, the turns between the loaded ones and the newest page are not known: begin with that page.
    const known = new Set(this.now.turns.map((turn) => turn.id));
    const first = !older && !read.some((turn) => known.has(turn.id));
    if (first && cursor !== null) this.now = { ...this.now, turns: [] };
    this.now = { ...this.now, total: page.totalCount, before: older || first ? cursor : this.now.before };
    this.addTurns(read);
  }

  addTurns(read: readonly Turn[]) {
    const turns = new Map(this.now.turns.map((turn) => [turn.id, turn]));
    let added = 0;
    for (const turn of read) {
      if (!turns.has(turn.id)) added++;
      turns.set(turn.id, turn);
      for (const a of turn.answers) this.keep(newer(this.latest(a.id), a));
    }
    const total = Math.max(this.now.total, this.now.before === null ? turns.size : this.now.turns.length + added);
    const sorted = [...turns.values()].sort((a, b) => (a.createdAt < b.createdAt ? -1 : 1));
    this.now = { ...this.now, total, turns: sorted };
    this.rebuild();
  }

  /** Sets the state of an answer that the server has pushed. */
  setAnswer(answer: Answer) {
    const old = this.latest(answer.id);
    if (old && rank(answer) < rank(old)) return;
    this.keep(answer);
    const turn = this.now.turns.find((one) => one.id === answer.turn);
    if (turn && !turn.answers.some((a) => a.id === answer.id)) {
      const turns = this.now.turns.map((one) => (one === turn ? { ...turn, answers: [...turn.answers, answer] } : one));
      this.now = { ...this.now, turns };
    }
    this.rebuild();
  }

  addDelta(delta: Delta) {
    const old = this.latest(delta.answer);
    if (!old || !runs(old)) return;
    const next = apply(old, delta);
    if (!next) return this.onGap();
    this.growing.set(delta.answer, next);
    this.timer ??= setTimeout(() => this.flush(), renderEvery);
  }

  /** Returns the newest state of an answer, which can be newer than the shown one. */
  latest(id: string): Answer | undefined {
    return this.growing.get(id) ?? this.answers.get(id);
  }

  /** Returns a turn with the newest states of its answers. */
  latestTurn(turn: Turn): Turn {
    return { ...turn, answers: turn.answers.map((a) => this.latest(a.id) ?? a) };
  }

  close() {
    clearTimeout(this.timer);
    this.timer = undefined;
  }

  private keep(answer: Answer) {
    this.growing.delete(answer.id);
    this.answers.set(answer.id, answer);
  }

  private flush() {
    this.timer = undefined;
    const ids = [...this.growing.keys()];
    for (const [id, answer] of this.growing) this.answers.set(id, answer);
    this.growing.clear();
    for (const id of ids) for (const listener of this.answerListeners.get(id) ?? []) listener();
  }

  /** Puts the states of the answers into their turns, after a turn, an answer or a status has changed. */
  private rebuild() {
    const turns = this.now.turns.map((turn) => {
      const answers = turn.answers.map((a) => this.answers.get(a.id) ?? a);
      return answers.every((a, i) => a === turn.answers[i]) ? turn : { ...turn, answers };
    });
    this.now = { ...this.now, turns };
    this.notify();
    for (const set of this.answerListeners.values()) for (const listener of set) listener();
  }

  private notify() {
    for (const listener of this.listeners) listener();
  }
}
