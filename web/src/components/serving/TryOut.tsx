import { Button, SegmentedControl, Textarea } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { useAction } from "../../hooks/useAction";
import { t } from "../../i18n";
import { Empty, FailureNote } from "../Note";
import { CreateKey, type DeploymentDetail, measured, RevokeKey, rate } from "./serving";
import { type Answer, type Kind, send, tokenRate } from "./tryout";

interface Props {
  deployment: DeploymentDetail;
  address: string | null;
  over: boolean;
}

/** Milliseconds for which the key of one request is valid; it is revoked after the answer. */
const keyLife = 15 * 60_000;

/** Sends one request to a deployment, and shows the answer as it arrives. */
export function TryOut({ deployment: d, address, over }: Props) {
  const [kind, setKind] = useState<Kind>("chat");
  const [text, setText] = useState("");
  const [answer, setAnswer] = useState<Answer | null>(null);
  const [problem, setProblem] = useState<string | null>(null);
  const [busy, setBusy] = useState(false);
  const create = useAction(CreateKey);
  const revoke = useAction(RevokeKey, true);
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);

  if (!address || over) {
    return (
      <div className="panel">
        <Empty title={over ? t("The deployment has ended") : t("No gateway serves models")} />
      </div>
    );
  }

  async function run(to: string) {
    abort.current?.abort();
    const control = new AbortController();
    abort.current = control;
    setBusy(true);
    setProblem(null);
    setAnswer(null);
    const input = {
      name: "try-out on the page",
      deployment: d.id,
      expiresAt: new Date(Date.now() + keyLife).toISOString(),
    };
    const made = d.open ? null : await create.run({ input });
    if (d.open || made) {
      try {
        const key = made?.createDeploymentKey.secret ?? "";
        await send({ address: to, key, kind, model: d.name, text, signal: control.signal, onChange: setAnswer });
      } catch (error) {
        if (!control.signal.aborted) setProblem(reason(error, to));
      }
      if (made) await revoke.run({ input: { id: made.createDeploymentKey.key.id } });
    }
    setBusy(false);
  }
  const speed = answer ? tokenRate(answer) : null;
  return (
    <section className="panel pad stack" aria-label={t("Try it")}>
      <form
        className="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (text.trim() && !busy) void run(address);
        }}
      >
        <SegmentedControl
          aria-label={t("Kind of request")}
          style={{ alignSelf: "flex-start" }}
          data={[
            { value: "chat", label: t("Chat") },
            { value: "completion", label: t("Completion") },
            { value: "embedding", label: t("Embedding") },
          ]}
          value={kind}
          onChange={(value) => setKind(value as Kind)}
        />
        <Textarea
          label={kind === "embedding" ? t("Text") : t("Prompt")}
          autosize
          minRows={3}
          maxRows={12}
          value={text}
          onChange={(e) => setText(e.currentTarget.value)}
          onKeyDown={(e) => {
            if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) e.currentTarget.form?.requestSubmit();
          }}
        />
        <div className="row">
          <Button type="submit" loading={busy} disabled={!text.trim()}>
            {t("Send")}
          </Button>
          {busy ? (
            <Button variant="default" onClick={() => abort.current?.abort()}>
              {t("Stop")}
            </Button>
          ) : null}
          <span className="dim">
            {d.open
              ? t("The page sends the request to the address of the deployment.")
              : t("The page creates a key for this request, and revokes it after the answer.")}
          </span>
        </div>
      </form>
      <FailureNote failure={create.failure} what={t("The key could not be created")} />
      {problem ? (
        <div className="failure" role="alert">
          {problem}
        </div>
      ) : null}
      {answer ? (
        <>
          {answer.progress ? (
            <p className="dim" role="status">
              {answer.progress}
            </p>
          ) : null}
          <pre className="answer" tabIndex={0} aria-label={t("Answer")} aria-busy={busy}>
            {answer.text}
          </pre>
          <dl className="numbers">
            {(
              [
                [t("First token"), measured(answer.first)],
                [t("Total"), measured(answer.total)],
                [t("Tokens in"), answer.prompt ?? "–"],
                [t("Tokens out"), answer.completion ?? "–"],
                [t("Tokens/s"), speed === null ? "–" : rate(speed)],
              ] as const
            ).map(([name, value]) => (
              <div key={name}>
                <dt>{name}</dt>
                <dd>{value}</dd>
              </div>
            ))}
          </dl>
        </>
      ) : null}
    </section>
  );
}

/** Describes why a request failed. Browsers report all failures of the network as TypeError. */
function reason(error: unknown, address: string): string {
  if (error instanceof TypeError) return t("The browser cannot reach {{address}}.", { address });
  return error instanceof Error ? error.message : String(error);
}
