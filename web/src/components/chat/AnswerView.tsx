import { Button, CopyButton } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { lazy, memo, Suspense } from "react";
import { useCurrency } from "../../hooks/useCurrency";
import { t } from "../../i18n";
import { word } from "../../words";
import { Toned } from "../Status";
import { measured, percent, rate } from "../serving/serving";
import { type Answer, runs } from "./chat";
import { visible } from "./visible";

const Markdown = lazy(() => import("./Markdown"));

/** What one can do with an answer. Functions that are null are not possible. */
export interface AnswerActions {
  regenerate: ((turn: string, column: number) => void) | null;
  stop: ((answer: string) => void) | null;
  pick: (answer: Answer) => void;
  /** Asks only this column from now on. */
  adopt: ((answer: Answer) => void) | null;
}

interface Props {
  answer: Answer;
  /** Name of the model or of the column. */
  name: string;
  /** All answers of the column to this prompt, the oldest first. */
  versions: readonly Answer[];
  adopted: boolean;
  /** The answer is in the last turn. */
  last: boolean;
  actions: AnswerActions;
}

/** One answer: its text, how it was measured, and what one can do with it. */
export const AnswerView = memo(function AnswerView({ answer: a, name, versions, adopted, last, actions }: Props) {
  const at = versions.findIndex((v) => v.id === a.id);
  const running = runs(a);
  return (
    <article
      className="chat-answer"
      aria-label={t("Answer of {{name}}", { name })}
      data-status={a.status.toLowerCase()}
    >
      {a.reasoning ? (
        <details className="chat-reasoning" open={running && a.text === ""}>
          <summary>{t("Reasoning")}</summary>
          <div className="chat-plain">{visible(a.reasoning)}</div>
        </details>
      ) : null}
      {a.text ? (
        <Suspense fallback={<div className="chat-plain">{visible(a.text)}</div>}>
          <Markdown text={a.text} done={!running} />
        </Suspense>
      ) : null}
      <State answer={a} />
      <Numbers answer={a} />
      <div className="row tight chat-actions">
        {versions.length > 1 ? (
          <Switch
            label={t("Answers of {{name}}", { name })}
            at={at}
            of={versions.length}
            onGo={(n) => actions.pick(versions[n]!)}
          />
        ) : null}
        {running && actions.stop ? (
          <Action label={t("Stop {{name}}", { name })} text={t("Stop")} onClick={() => actions.stop?.(a.id)} />
        ) : null}
        {!running && actions.regenerate ? (
          <Action
            label={t("Regenerate the answer of {{name}}", { name })}
            text={t("Regenerate")}
            onClick={() => actions.regenerate?.(a.turn, a.column)}
          />
        ) : null}
        {a.text ? (
          <CopyButton value={a.text} timeout={1500}>
            {({ copied, copy }) => (
              <Action
                label={t("Copy the answer of {{name}}", { name })}
                text={copied ? t("Copied") : t("Copy")}
                onClick={copy}
              />
            )}
          </CopyButton>
        ) : null}
        {last && !running && a.text && actions.adopt ? (
          <Button
            variant={adopted ? "light" : "subtle"}
            size="compact-xs"
            aria-pressed={adopted}
            aria-label={t("Continue only with this answer of {{name}}", { name })}
            onClick={() => actions.adopt?.(a)}
          >
            {t("Continue only with this")}
          </Button>
        ) : null}
      </div>
    </article>
  );
});

function Action({ label, text, onClick }: { label: string; text: string; onClick: () => void }) {
  return (
    <Button variant="subtle" size="compact-xs" aria-label={label} onClick={onClick}>
      {text}
    </Button>
  );
}

/** Goes through numbered versions: ‹ 2/3 ›. */
export function Switch({ label, at, of, onGo }: { label: string; at: number; of: number; onGo: (at: number) => void }) {
  return (
    <span className="row keep tight" role="group" aria-label={label}>
      <Button
        variant="subtle"
        size="compact-xs"
        aria-label={t("Previous")}
        disabled={at <= 0}
        onClick={() => onGo(at - 1)}
      >
        ‹
      </Button>
      <span className="nowrap">
        {at + 1}/{of}
      </span>
      <Button
        variant="subtle"
        size="compact-xs"
        aria-label={t("Next")}
        disabled={at >= of - 1}
        onClick={() => onGo(at + 1)}
      >
        ›
      </Button>
    </span>
  );
}

function State({ answer: a }: { answer: Answer }) {
  const state = word("ChatAnswerStatus", a.status);
  if (a.status === "WAITING") {
    return (
      <Toned tone="wait" status={a.status}>
        <span className="sentence chat-message">{a.message || state}</span>
      </Toned>
    );
  }
  if (a.status === "RUNNING") {
    return a.text === "" ? (
      <Toned tone="busy" status={a.status}>
        {state}
      </Toned>
    ) : null;
  }
  if (a.status === "DONE") {
    return a.text === "" ? <span className="dim">{t("The answer is empty.")}</span> : null;
  }
  if (a.status === "STOPPED") return <span className="dim">{state}</span>;
  return (
    <div className="failure">
      <b>{state}</b>
      {a.message ? <div className="sentence">{visible(a.message)}</div> : null}
    </div>
  );
}

/** The measurements of an answer in one line. Those that are not known are left out. */
function Numbers({ answer: { metrics: m, cost, revision, session } }: { answer: Answer }) {
  const currency = useCurrency();
  const facts: [label: string, value: string][] = [];
  if (m?.firstToken != null) {
    facts.push([t("Time to the first token"), t("first token {{time}}", { time: measured(m.firstToken) })]);
  }
  if (m?.tokensPerSecond != null) facts.push([t("Speed"), t("{{n}} tokens/s", { n: rate(m.tokensPerSecond) })]);
  if (m?.completionTokens != null) {
    facts.push([t("Tokens of the answer"), t("{{n}} tokens", { n: m.completionTokens })]);
  }
  if (m?.promptTokens != null) facts.push([t("Tokens of the prompt"), t("prompt {{n}}", { n: m.promptTokens })]);
  if (m?.cachedTokens != null && m.promptTokens) {
    const share = percent(m.cachedTokens / m.promptTokens);
    facts.push([t("Part of the prompt that the engine had in its cache"), t("{{share}} cached", { share })]);
  }
  if (m?.duration != null)
    facts.push([t("Time of the whole answer"), t("{{time}} in all", { time: measured(m.duration) })]);
  if (cost !== null) facts.push([t("Cost of the answer"), `${cost} ${currency}`]);
  if (facts.length === 0 && revision === null && session === null) return null;
  return (
    <p className="chat-numbers dim">
      {facts.map(([label, value]) => (
        <span key={label} title={label}>
          {value}
        </span>
      ))}
      {revision !== null ? <span title={t("Revision of the deployment")}>r{revision}</span> : null}
      {session ? (
        <Link to="/sessions/$id" params={{ id: session.id }} title={t("Session of the replica that answered")}>
          {session.name}
        </Link>
      ) : null}
    </p>
  );
}
