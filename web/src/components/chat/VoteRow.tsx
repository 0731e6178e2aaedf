import { Button } from "@mantine/core";
import { useKeys } from "../../hooks/useKeys";
import { t } from "../../i18n";
import type { Answer, Turn } from "./chat";

interface Props {
  turn: Turn;
  /** The answers that are shown, from left to right. */
  answers: readonly Answer[];
  names: readonly string[];
  /** The keys 1 to 8 and 0 vote on this turn. */
  keys: boolean;
  /** Null: the viewer only reads. */
  onVote: ((turn: string, answers: string[], winner: string | null) => void) | null;
}

/** Asks which answer is the best, and shows the vote. */
export function VoteRow({ turn, answers, names, keys, onVote }: Props) {
  const ids = answers.map((a) => a.id);
  const comparable = answers.every((a) => a.text !== "");
  const vote = turn.votes.find((v) => v.answers.length === ids.length && v.answers.every((id) => ids.includes(id)));
  const cast = (winner: string | null) => onVote?.(turn.id, ids, winner);
  useKeys(
    keys && onVote && comparable
      ? Object.fromEntries([...ids.map((id, i) => [String(i + 1), () => cast(id)]), ["0", () => cast(null)]])
      : {},
  );
  if (!onVote && !vote) return null;
  if (!comparable) return null;
  const pressed = (winner: string | null) => vote !== undefined && (vote.winner ?? null) === winner;
  return (
    <div className="chat-vote" role="group" aria-label={t("Which answer is the best?")}>
      <span className="dim">{t("Which answer is the best?")}</span>
      {ids.map((id, i) => (
        <Choice
          key={id}
          pressed={pressed(id)}
          hint={keys ? String(i + 1) : ""}
          onClick={onVote ? () => cast(id) : null}
        >
          {names[i]!}
        </Choice>
      ))}
      <Choice pressed={pressed(null)} hint={keys ? "0" : ""} onClick={onVote ? () => cast(null) : null}>
        {t("None is better")}
      </Choice>
    </div>
  );
}

interface ChoiceProps {
  pressed: boolean;
  hint: string;
  onClick: (() => void) | null;
  children: string;
}

function Choice({ pressed, hint, onClick, children }: ChoiceProps) {
  return (
    <Button
      variant={pressed ? "light" : "default"}
      size="compact-sm"
      aria-pressed={pressed}
      disabled={!onClick}
      onClick={() => onClick?.()}
    >
      {children}
      {hint && onClick ? (
        <span className="key" aria-hidden="true" style={{ marginLeft: 6 }}>
          {hint}
        </span>
      ) : null}
    </Button>
  );
}
