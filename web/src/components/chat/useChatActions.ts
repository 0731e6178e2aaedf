import { useMemo, useRef } from "react";
import { useClient } from "urql";
import { useAction } from "../../hooks/useAction";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import {
  AttachmentsQuery,
  type Chat,
  type Column,
  type Model,
  type Parameters,
  Regenerate,
  SendPrompt,
  StopAnswers,
  type Turn,
  UpdateChat,
  VoteAnswer,
} from "./chat";
import type { Draft } from "./draft";
import type { Head, HeadActions } from "./Heads";
import { inputOf, linkName } from "./models";
import { noParameters, parametersInput } from "./params";
import type { TurnActions } from "./TurnView";
import { continuation, type Picks, type Step, targets } from "./tree";
import type { OpenChat } from "./useChat";

/** An open chat, and what is shown of it. */
export interface LoadedProps {
  chat: Chat;
  open: OpenChat;
  models: readonly Model[];
  steps: readonly Step<Turn>[];
  heads: readonly Head[];
  picks: Picks;
  /** The only column that gets the next prompt; null: all. */
  adopted: number | null;
  /** The number of turns that are not loaded. */
  more: number;
  onBranch: (turn: string) => void;
  onPick: (turn: string, column: number, answer: string) => void;
  onAdopt: (column: number | null) => void;
}

/** What one can do in an open chat. The functions of turns stay the same, so that turns are not rendered for them. */
export function useChatActions(props: LoadedProps, draft: Draft, change: (some: Partial<Draft>) => void) {
  const { chat, open, heads } = props;
  const client = useClient();
  const prompt = useAction(SendPrompt);
  const again = useAction(Regenerate, true);
  const stop = useAction(StopAnswers, true);
  const vote = useAction(VoteAnswer, true);
  const update = useAction(UpdateChat, true);
  const latest = useRef(props);
  latest.current = props;
  const active = heads.filter((h) => !h.removed).map((h) => h.key);

  /** Returns with which answers of a turn a new prompt continues. */
  function after(before: Turn | undefined, columns: readonly number[]) {
    return before ? continuation(open.store.latestTurn(before), columns, latest.current.picks) : undefined;
  }
  /** Sends a prompt after a turn, which is not loaded if it is before the shown ones. */
  async function post(id: string | null, text: string, files: Draft["attachments"], adopted: number | null) {
    const { steps } = latest.current;
    const end = steps.findIndex((s) => s.turn.id === id);
    const previous = steps[end]?.turn;
    const asked = adopted === null ? targets(steps.slice(0, end + 1), active) : [adopted];
    const done = await prompt.run({
      input: {
        chat: chat.id,
        previous: id,
        prompt: text,
        attachments: files.map(({ name, type, data }) => ({ name, type, data })),
        after: after(previous, asked),
        ...(asked.length < active.length ? { columns: asked } : {}),
      },
    });
    if (!done) return false;
    open.store.addTurns([done.sendChatPrompt.turn]);
    latest.current.onBranch(done.sendChatPrompt.turn.id);
    latest.current.onAdopt(null);
    return true;
  }
  async function send() {
    const { prompt: text, attachments } = draft;
    if (await post(latest.current.steps.at(-1)?.turn.id ?? null, text, attachments, latest.current.adopted)) {
      change({ prompt: "", attachments: [] });
    }
  }
  async function edit(turn: Turn, text: string) {
    let files: Draft["attachments"] = [];
    if (turn.attachments.length > 0) {
      const { data } = await client.query(AttachmentsQuery, { turn: turn.id });
      if (!data?.node || !("attachments" in data.node)) {
        toast({ failure: { code: "UNAVAILABLE", message: t("The files of the prompt could not be loaded.") } });
        return false;
      }
      files = [...data.node.attachments];
    }
    return post(turn.previous, text, files, null);
  }
  const own = { edit, active };
  const now = useRef(own);
  now.current = own;
  const turn = useMemo<TurnActions>(
    () => ({
      regenerate: !chat.own
        ? null
        : async (id, column) => {
            if (!latest.current.chat.columns.some((c) => c.number === column)) {
              toast({
                failure: { code: "FAILED_PRECONDITION", message: t("This model was removed from the chat.") },
              });
              return;
            }
            const done = await again.run({ input: { turn: id, column } });
            if (!done) return;
            open.store.addTurns([done.regenerateChatAnswer.turn]);
            const newest = done.regenerateChatAnswer.turn.answers.filter((a) => a.column === column).at(-1);
            if (newest) latest.current.onPick(id, column, newest.id);
          },
      stop: chat.own ? (answer) => void stop.run({ input: { chat: chat.id, answers: [answer] } }) : null,
      pick: (answer) => latest.current.onPick(answer.turn, answer.column, answer.id),
      adopt:
        chat.own && active.length > 1
          ? (answer) => latest.current.onAdopt(latest.current.adopted === answer.column ? null : answer.column)
          : null,
      edit: chat.own ? (one, text) => now.current.edit(one, text) : null,
      branch: (id) => latest.current.onBranch(id),
      vote: !chat.own
        ? null
        : async (id, answers, winner) => {
            const done = await vote.run({ input: { turn: id, answers, winner } });
            if (done) open.reload();
          },
    }),
    [chat.id, chat.own, active.length > 1, open.store],
  );
  const columns = useColumns(chat.columns, update.run, chat.id, (c) => open.store.setChat(c));
  return {
    turn,
    columns,
    send: () => void send(),
    stopAll: () => void stop.run({ input: { chat: chat.id } }),
    busy: prompt.busy,
    failure: prompt.failure,
    saving: update.busy,
  };
}

type Update = ReturnType<typeof useAction<UpdateResult, { input: UpdateInput }>>["run"];
type UpdateResult = import("gql.tada").ResultOf<typeof UpdateChat>;
type UpdateInput = import("gql.tada").VariablesOf<typeof UpdateChat>["input"];

interface Edited {
  number?: number;
  model: Model;
  parameters: Parameters;
}

/** Changes the columns of a chat. Columns whose model was deleted cannot stay. */
function useColumns(
  columns: readonly Column[],
  update: Update,
  chat: string,
  onChat: (chat: UpdateResult["updateChat"]["chat"]) => void,
): HeadActions {
  const all: Edited[] = columns.flatMap((c) =>
    c.model ? [{ number: c.number, model: c.model, parameters: c.parameters }] : [],
  );
  async function set(next: Edited[]) {
    const usable = next.flatMap(({ number, model, parameters }) => {
      const input = inputOf(model);
      return input ? [{ number, model: input, parameters: parametersInput(parameters) }] : [];
    });
    const lost = next.filter((c) => !inputOf(c.model)).map((c) => linkName(c.model));
    if (usable.length === 0) {
      toast({ failure: { code: "INVALID_ARGUMENT", message: t("A chat needs at least one model.") } });
      return;
    }
    const done = await update({ input: { id: chat, columns: usable } });
    if (!done) return;
    onChat(done.updateChat.chat);
    if (lost.length > 0) {
      toast({ text: t("{{names}} was removed: it is no longer available.", { names: lost.join(", ") }) });
    }
  }
  return {
    onAdd: (model) => void set([...all, { model, parameters: noParameters }]),
    onRemove: (key) => void set(all.filter((c) => c.number !== key)),
    onChange: (key, model, parameters) =>
      void set(all.map((c) => (c.number === key ? { number: key, model, parameters } : c))),
  };
}
