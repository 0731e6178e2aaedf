import { useContext, useEffect, useMemo, useState } from "react";
import { t } from "../../i18n";
import { NotFoundInFrame } from "../../pages/NotFound";
import { FailureNote } from "../Note";
import { Bar } from "./Bar";
import { Composer } from "./Composer";
import { type Chat, type Model, runs, type Turn } from "./chat";
import { useDraft } from "./draft";
import { AddColumn, type Head, Heads } from "./Heads";
import { ListButton } from "./listButton";
import { hidden, recorded } from "./models";
import { noParameters } from "./params";
import { Scroller, Turns } from "./Thread";
import { type Choice, choose, columnsOf, type Picks, path, pickKey, type Step, targets } from "./tree";
import { useChat, useShown } from "./useChat";
import { type LoadedProps, useChatActions } from "./useChatActions";

interface Props {
  id: string;
  models: readonly Model[];
  /** Is called when the title or the time of the chat has changed. */
  onChanged: (stamp: string) => void;
}

/** An open chat. */
export function ChatView({ id, models, onChanged }: Props) {
  const open = useChat(id);
  const listButton = useContext(ListButton);
  const { chat, turns, total, before } = useShown(open.store);
  const [choice, setChoice] = useState<Choice>({});
  const [picks, setPicks] = useState<Picks>({});
  const [adopted, setAdopted] = useState<number | null>(null);
  const steps = useMemo(() => path(turns, choice), [turns, choice]);
  const heads = useMemo(() => headsOf(chat, steps, adopted), [chat, steps, adopted]);
  useEffect(() => {
    if (chat) onChanged(`${chat.id} ${chat.title} ${chat.updatedAt} ${chat.shared}`);
  }, [chat?.id, chat?.title, chat?.updatedAt, chat?.shared]);

  if (open.missing) return <NotFoundInFrame />;
  if (!chat) {
    return (
      <div className="chat-main">
        <div className="chat-bar">
          {listButton}
          <h1>{t("Chat")}</h1>
        </div>
        {open.failure ? <FailureNote failure={open.failure} /> : <p className="chat-hint dim">{t("Loading…")}</p>}
      </div>
    );
  }
  return (
    <Loaded
      key={id}
      chat={chat}
      open={open}
      models={models}
      steps={steps}
      heads={heads}
      picks={picks}
      adopted={adopted}
      more={before !== null ? total - turns.length : 0}
      onBranch={(turn) => setChoice((old) => choose(open.store.shown().turns, old, turn))}
      onPick={(turn, column, answer) => setPicks((old) => ({ ...old, [pickKey(turn, column)]: answer }))}
      onAdopt={setAdopted}
    />
  );
}

/** Returns the heads of all columns that have an answer on the path: removed ones are at the right. */
function headsOf(chat: Chat | null, steps: readonly Step<Turn>[], adopted: number | null): Head[] {
  if (!chat) return [];
  const now = chat.columns.map((c) => c.number);
  const all = columnsOf({ answers: steps.flatMap((s) => s.turn.answers) }, now);
  const asked = adopted === null ? targets(steps, now) : [adopted];
  return all.map((key) => {
    const column = chat.columns.find((c) => c.number === key);
    if (column) return { key, model: column.model, parameters: column.parameters, paused: !asked.includes(key) };
    const answer = steps.flatMap((s) => s.turn.answers).findLast((a) => a.column === key);
    return { key, model: answer?.model ?? null, parameters: answer?.parameters ?? noParameters, removed: true };
  });
}

function Loaded(props: LoadedProps) {
  const { chat, open, models, steps, heads, picks, adopted, more } = props;
  const [draft, change] = useDraft(chat.id);
  const { turn, columns, send, stopAll, busy, failure, saving } = useChatActions(props, draft, change);
  const running = steps.some((s) => s.turn.answers.some(runs));
  const blindNow = hidden(chat);
  const active = heads.filter((h) => !h.removed);
  return (
    <div className="chat-main">
      <Bar chat={chat} steps={steps} picks={picks} heads={active} models={models} onChat={(c) => open.store.setChat(c)}>
        {blindNow ? null : <AddColumn count={active.length} models={models} onAdd={columns.onAdd} />}
      </Bar>
      <FailureNote failure={open.failure} what={t("The chat below is not current")} />
      <Scroller
        heads={heads}
        header={<Heads heads={heads} models={models} actions={chat.own && !blindNow && !saving ? columns : null} />}
      >
        <Turns
          store={open.store}
          steps={steps}
          heads={heads}
          picks={picks}
          adopted={adopted}
          actions={turn}
          onEarlier={more > 0 ? open.earlier : null}
        />
      </Scroller>
      {chat.own ? (
        <Composer
          prompt={draft.prompt}
          attachments={draft.attachments}
          onChange={change}
          blocked={
            active.length === 0 ? t("Choose a model first.") : running ? t("Wait for the answers, or stop them.") : null
          }
          recorded={recorded(active, models)}
          busy={busy}
          failure={failure}
          onSend={send}
          onStop={running ? stopAll : null}
        />
      ) : (
        <p className="chat-hint dim">{t("You can read this chat because its owner shares it.")}</p>
      )}
    </div>
  );
}
