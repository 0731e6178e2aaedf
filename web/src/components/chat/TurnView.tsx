import { Button, Textarea } from "@mantine/core";
import { memo, useState } from "react";
import { t } from "../../i18n";
import { type AnswerActions, AnswerView, Switch } from "./AnswerView";
import { TurnFiles } from "./Attachments";
import { type Answer, runs, type Turn } from "./chat";
import { columnName, type Head } from "./Heads";
import type { ChatStore } from "./store";
import { type Picks, shown, versions } from "./tree";
import { useAnswer } from "./useChat";
import { VoteRow } from "./VoteRow";
import { visible } from "./visible";

export interface TurnActions extends AnswerActions {
  /** Asks a changed prompt instead, in a new branch. */
  edit: ((turn: Turn, prompt: string) => Promise<boolean>) | null;
  branch: (turn: string) => void;
  vote: ((turn: string, answers: string[], winner: string | null) => void) | null;
}

interface Props {
  store: ChatStore;
  turn: Turn;
  /** The turns with the same previous one. */
  branches: readonly Turn[];
  next: Turn | undefined;
  heads: readonly Head[];
  picks: Picks;
  /** The only column that gets the next prompt; null: all. */
  adopted: number | null;
  actions: TurnActions;
}

/** One prompt and its answers, side by side. */
export const TurnView = memo(function TurnView(props: Props) {
  const { store, turn, branches, next, heads, picks, adopted, actions } = props;
  const [edited, setEdited] = useState<string | null>(null);
  const at = branches.findIndex((b) => b.id === turn.id);
  const visibleAnswers = heads.flatMap((h) => shown(turn, h.key, picks, next) ?? []);
  return (
    <section className="chat-turn" aria-label={t("Prompt and answers")}>
      <div className="chat-prompt">
        {edited === null ? (
          <>
            {turn.attachments.length > 0 ? <TurnFiles turn={turn.id} files={turn.attachments} /> : null}
            {turn.prompt ? <div className="chat-plain">{visible(turn.prompt)}</div> : null}
            <div className="row tight chat-actions">
              {branches.length > 1 ? (
                <Switch
                  label={t("Versions of the prompt")}
                  at={at}
                  of={branches.length}
                  onGo={(n) => actions.branch(branches[n]!.id)}
                />
              ) : null}
              {actions.edit ? (
                <Button
                  variant="subtle"
                  size="compact-xs"
                  aria-label={t("Edit the prompt")}
                  onClick={() => setEdited(turn.prompt)}
                >
                  {t("Edit")}
                </Button>
              ) : null}
            </div>
          </>
        ) : (
          <EditPrompt
            prompt={edited}
            files={turn.attachments.length > 0}
            onChange={setEdited}
            onCancel={() => setEdited(null)}
            onSend={async () => {
              if (await actions.edit?.(turn, edited)) setEdited(null);
            }}
          />
        )}
      </div>
      <div className="chat-lanes">
        {heads.map((head, i) => {
          const answer = shown(turn, head.key, picks, next);
          return (
            <div key={head.key} className="chat-lane">
              {answer ? (
                <Growing
                  store={store}
                  answer={answer}
                  name={columnName(head, i)}
                  all={versions(turn.answers, head.key)}
                  adopted={adopted === head.key}
                  last={next === undefined}
                  actions={actions}
                />
              ) : null}
            </div>
          );
        })}
      </div>
      {visibleAnswers.length > 1 && visibleAnswers.every((a) => !runs(a)) ? (
        <VoteRow
          turn={turn}
          answers={visibleAnswers}
          names={visibleAnswers.map((a) => {
            const i = heads.findIndex((h) => h.key === a.column);
            return columnName(heads[i]!, i);
          })}
          keys={next === undefined}
          onVote={actions.vote}
        />
      ) : null}
    </section>
  );
});

function Growing({
  store,
  answer,
  all,
  ...rest
}: {
  store: ChatStore;
  answer: Answer;
  name: string;
  all: readonly Answer[];
  adopted: boolean;
  last: boolean;
  actions: AnswerActions;
}) {
  return <AnswerView answer={useAnswer(store, answer)} versions={all} {...rest} />;
}

interface EditProps {
  prompt: string;
  files: boolean;
  onChange: (prompt: string) => void;
  onCancel: () => void;
  onSend: () => void;
}

function EditPrompt({ prompt, files, onChange, onCancel, onSend }: EditProps) {
  return (
    <form
      className="stack small"
      onSubmit={(event) => {
        event.preventDefault();
        if (prompt.trim() !== "" || files) onSend();
      }}
    >
      <Textarea
        aria-label={t("Changed prompt")}
        autosize
        autoFocus
        maxRows={12}
        size="sm"
        value={prompt}
        onChange={(e) => onChange(e.currentTarget.value)}
        onKeyDown={(event) => {
          if (event.key === "Escape") onCancel();
          if (event.key !== "Enter" || event.shiftKey || event.nativeEvent.isComposing) return;
          event.preventDefault();
          if (prompt.trim() !== "" || files) onSend();
        }}
      />
      <div className="row">
        <span className="dim">{t("The former prompt and its answers stay in a branch.")}</span>
        <Button className="push" variant="default" onClick={onCancel}>
          {t("Cancel")}
        </Button>
        <Button type="submit" disabled={prompt.trim() === "" && !files}>
          {t("Send in a new branch")}
        </Button>
      </div>
    </form>
  );
}
