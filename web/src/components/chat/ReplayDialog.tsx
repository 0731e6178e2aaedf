import { Button, Modal, Select } from "@mantine/core";
import { useEffect, useState } from "react";
import { useAction } from "../../hooks/useAction";
import { useFocusBack } from "../../hooks/useFocusBack";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { t } from "../../i18n";
import { word } from "../../words";
import { when } from "../format";
import { FailureNote } from "../Note";
import { measured, percent } from "../serving/serving";
import { ModelFields } from "./ColumnDialog";
import { type Model, type Replay, ReplayChat, ReplaysQuery, runs } from "./chat";
import { columnName, type Head } from "./Heads";
import { inputOf, labelOf } from "./models";
import { visible } from "./visible";
import { wordDiff } from "./wordDiff";

/** Milliseconds between two looks at a replay that runs. */
const lookEvery = 1500;

interface Props {
  chat: string;
  /** The last turn that is shown. */
  turn: string;
  heads: readonly Head[];
  models: readonly Model[];
  /** The viewer can start a replay. */
  own: boolean;
  onClose: () => void;
}

/** Repeats the answers of a column with another model or revision, and compares them. */
export default function ReplayDialog({ chat, turn, heads, models, own, onClose }: Props) {
  useFocusBack();
  const { data, failure, refetch } = useLiveQuery({ query: ReplaysQuery, variables: { id: chat } });
  const start = useAction(ReplayChat);
  const [column, setColumn] = useState(heads[0]?.key ?? 0);
  const [model, setModel] = useState<Model | null>(heads[0]?.model ?? models[0] ?? null);
  const replays = [...(data?.chat?.replays ?? [])].reverse();
  const [openId, setOpenId] = useState<string | null>(null);
  const open = replays.find((r) => r.id === openId) ?? replays[0];
  // Pushed answers end before they are compared.
  const looking = replays.some((r) =>
    r.answers.some((a) => runs(a.repeated) || (a.equal === null && a.repeated.status === "DONE")),
  );
  useEffect(() => {
    if (!looking) return;
    const timer = setInterval(refetch, lookEvery);
    return () => clearInterval(timer);
  }, [looking, refetch]);

  async function run() {
    const input = model ? inputOf(model) : null;
    if (!input) return;
    const done = await start.run({ input: { chat, turn, column, model: input } });
    if (!done) return;
    setOpenId(done.replayChat.replay.id);
    refetch();
  }
  return (
    <Modal opened onClose={onClose} size="xl" title={t("Replays")} closeButtonProps={{ "aria-label": t("Close") }}>
      <div className="stack">
        <p className="dim">
          {t(
            "A replay sends each prompt again, with the recorded conversation before it, to another model or revision. The chat itself stays as it is.",
          )}
        </p>
        {own && model ? (
          <form
            className="stack"
            onSubmit={(event) => {
              event.preventDefault();
              void run();
            }}
          >
            <Select
              label={t("Answers of")}
              allowDeselect={false}
              value={String(column)}
              data={heads.map((h, i) => ({ value: String(h.key), label: columnName(h, i) }))}
              onChange={(value) => setColumn(Number(value))}
            />
            <ModelFields models={models} model={model} onModel={setModel} />
            <FailureNote failure={start.failure} />
            <div className="row">
              <Button type="submit" loading={start.busy} disabled={!inputOf(model)}>
                {t("Replay")}
              </Button>
            </div>
          </form>
        ) : null}
        <FailureNote failure={failure} />
        {replays.length > 1 ? (
          <Select
            label={t("Replay")}
            allowDeselect={false}
            value={open?.id ?? null}
            data={replays.map((r) => ({ value: r.id, label: `${labelOf(r.model)} · ${when(r.createdAt)}` }))}
            onChange={setOpenId}
          />
        ) : null}
        {open ? <Comparison replay={open} /> : null}
        {data && replays.length === 0 ? <p className="dim">{t("No replays yet")}</p> : null}
      </div>
    </Modal>
  );
}

function Comparison({ replay }: { replay: Replay }) {
  const [shown, setShown] = useState<number | null>(null);
  const row = shown === null ? undefined : replay.answers[shown];
  const ended = replay.answers.filter((a) => a.equal !== null);
  const mean = ended.reduce((sum, a) => sum + (a.similarity ?? 0), 0) / Math.max(1, ended.length);
  return (
    <section className="stack" aria-label={t("Differences")}>
      <p role="status">
        {t(
          "{{name}}: {{done}} of {{all}} answers are repeated, and {{equal}} of them are equal. On average, {{share}} of the words are the same.",
          {
            name: labelOf(replay.model),
            done: ended.length,
            all: replay.answers.length,
            equal: ended.filter((a) => a.equal).length,
            share: percent(mean),
          },
        )}
      </p>
      <div className="panel scroll-x" tabIndex={0} role="group" aria-label={t("Differences by prompt")}>
        <table className="grid">
          <thead>
            <tr>
              <th scope="col">{t("Prompt")}</th>
              <th scope="col" className="num">
                {t("First token")}
              </th>
              <th scope="col" className="num">
                {t("Whole answer")}
              </th>
              <th scope="col" className="num">
                {t("Tokens")}
              </th>
              <th scope="col">{t("Equal")}</th>
              <th scope="col" className="num">
                {t("Similarity")}
              </th>
              <th scope="col">{t("Text")}</th>
            </tr>
          </thead>
          <tbody>
            {replay.answers.map((a, i) => (
              <tr key={a.repeated.id}>
                <td className="clip">{visible(a.prompt)}</td>
                <td className="num nowrap">{pair(a, (m) => measured(m?.firstToken))}</td>
                <td className="num nowrap">{pair(a, (m) => measured(m?.duration))}</td>
                <td className="num nowrap">{pair(a, (m) => String(m?.completionTokens ?? "–"))}</td>
                <td>{a.equal === null ? word("ChatAnswerStatus", a.repeated.status) : a.equal ? t("yes") : t("no")}</td>
                <td className="num">{a.similarity === null ? "–" : percent(a.similarity)}</td>
                <td>
                  <Button
                    variant="subtle"
                    size="compact-xs"
                    aria-pressed={shown === i}
                    aria-label={t("Show the differences of prompt {{n}}", { n: i + 1 })}
                    onClick={() => setShown(shown === i ? null : i)}
                  >
                    {t("Show")}
                  </Button>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {row ? <Differences row={row} /> : null}
    </section>
  );
}

type Row = Replay["answers"][number];

const pair = (a: Row, value: (m: Row["original"]["metrics"]) => string) => (
  <>
    {value(a.original.metrics)} <span className="dim">→</span> {value(a.repeated.metrics)}
  </>
);

function Differences({ row }: { row: Row }) {
  if (row.repeated.message) return <p className="failure sentence">{visible(row.repeated.message)}</p>;
  const pieces = wordDiff(visible(row.original.text), visible(row.repeated.text));
  if (!pieces) return <p className="dim">{t("The answers are too long to compare word by word.")}</p>;
  return (
    <div className="chat-diff" tabIndex={0} role="group" aria-label={t("Differences by word")}>
      {pieces.map((p, i) =>
        p.kind === "same" ? (
          <span key={i}>{p.text}</span>
        ) : p.kind === "added" ? (
          <ins key={i}>{p.text}</ins>
        ) : (
          <del key={i}>{p.text}</del>
        ),
      )}
    </div>
  );
}
