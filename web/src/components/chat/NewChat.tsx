import { Button, Switch } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useContext, useEffect, useRef, useState } from "react";
import { useAction } from "../../hooks/useAction";
import { t } from "../../i18n";
import { Empty } from "../Note";
import { Composer } from "./Composer";
import { CopyLink } from "./CopyLink";
import { CreateChat, type Model, mostColumns, SendPrompt } from "./chat";
import { type DraftColumn, emptyDraft, useDraft, writeDraft } from "./draft";
import { AddColumn, type HeadActions, Heads } from "./Heads";
import { ListButton } from "./listButton";
import { draftLink, fromLink, inputOf, keyOf, linkName, recorded } from "./models";
import { noParameters, parametersInput } from "./params";
import { Scroller } from "./Thread";

/** Models that are offered as buttons. */
const offered = 6;

const column = (columns: readonly DraftColumn[], model: Model): DraftColumn => ({
  key: columns.reduce((most, c) => Math.max(most, c.key), -1) + 1,
  model,
  parameters: noParameters,
});

/** A chat that begins with its first prompt. */
export function NewChat({ models, loaded }: { models: readonly Model[]; loaded: boolean }) {
  const navigate = useNavigate();
  const [draft, change] = useDraft("new");
  const create = useAction(CreateChat);
  const send = useAction(SendPrompt);
  const missing = useLink(models, loaded, draft.columns, change);
  const inputs = draft.columns.map((c) => inputOf(c.model));
  const gone = draft.columns.filter((c) => loaded && !models.some((m) => keyOf(m) === keyOf(c.model)));
  const blind = draft.blind && draft.columns.length > 1;

  const actions: HeadActions = {
    onChange: (key, model, parameters) =>
      change({ columns: draft.columns.map((c) => (c.key === key ? { key, model, parameters } : c)) }),
    onRemove: (key) => change({ columns: draft.columns.filter((c) => c.key !== key) }),
    onAdd: (model) => change({ columns: [...draft.columns, column(draft.columns, model)] }),
  };

  async function begin() {
    const columns = draft.columns.flatMap((c, i) => {
      const model = inputs[i];
      return model ? [{ model, parameters: parametersInput(c.parameters) }] : [];
    });
    const made = await create.run({ input: { columns, blind } });
    if (!made) return;
    const { id } = made.createChat.chat;
    const { prompt, attachments } = draft;
    const files = attachments.map(({ name, type, data }) => ({ name, type, data }));
    const sent = await send.run({ input: { chat: id, prompt, attachments: files } });
    // The chat exists. A prompt that was refused waits in it.
    if (!sent) writeDraft(id, { ...emptyDraft, prompt, attachments });
    change({ prompt: "", attachments: [] });
    void navigate({ to: "/chat/$id", params: { id } });
  }
  const blocked =
    draft.columns.length === 0
      ? t("Choose a model first.")
      : gone.length > 0
        ? t("{{names}} cannot be used any longer: remove it.", { names: gone.map((c) => linkName(c.model)).join(", ") })
        : null;
  return (
    <div className="chat-main">
      <div className="chat-bar">
        {useContext(ListButton)}
        <h1>{t("New chat")}</h1>
        <AddColumn count={draft.columns.length} models={models} onAdd={actions.onAdd} />
        {draft.columns.length > 1 ? (
          <Switch
            label={t("Blind")}
            title={t("Hides the names of the models until you vote.")}
            checked={blind}
            onChange={(e) => change({ blind: e.currentTarget.checked })}
          />
        ) : null}
        {draft.columns.length > 0 ? (
          <span className="push">
            <CopyLink
              value={draftLink(
                location.origin,
                draft.columns.map((c) => c.model),
                draft.prompt,
              )}
              label={t("Copy link to this draft")}
            />
          </span>
        ) : null}
      </div>
      <Scroller
        heads={draft.columns}
        header={draft.columns.length > 0 ? <Heads heads={draft.columns} models={models} actions={actions} /> : null}
      >
        {missing.length > 0 ? (
          <p className="failure chat-alert" role="alert">
            {t("The link names models that you cannot use: {{names}}", { names: missing.join(", ") })}
          </p>
        ) : null}
        {draft.columns.length === 0 ? (
          <Start models={models} loaded={loaded} onPick={actions.onAdd} />
        ) : (
          <p className="chat-hint dim">
            {draft.columns.length < mostColumns
              ? t("Add models to compare their answers side by side.")
              : t("A chat can have 8 models.")}
          </p>
        )}
      </Scroller>
      <Composer
        prompt={draft.prompt}
        attachments={draft.attachments}
        onChange={change}
        blocked={blocked}
        recorded={recorded(draft.columns, models)}
        busy={create.busy || send.busy}
        failure={create.failure}
        onSend={() => void begin()}
        onStop={null}
      />
    </div>
  );
}

function Start({
  models,
  loaded,
  onPick,
}: {
  models: readonly Model[];
  loaded: boolean;
  onPick: (model: Model) => void;
}) {
  if (!loaded) return <p className="chat-hint dim">{t("Loading…")}</p>;
  if (models.length === 0) {
    return (
      <Empty title={t("No models")} cli="berth deploy create NAME --image IMAGE --variant vllm --model FOLDER">
        <span>
          {t("Deploy a model under Serving, or ask an administrator to allow an endpoint outside the cluster.")}
        </span>
      </Empty>
    );
  }
  return (
    <Empty title={t("Choose a model")}>
      <span>{t("Choose several to compare their answers side by side.")}</span>
      <div className="row" style={{ justifyContent: "center" }}>
        {models.slice(0, offered).map((m) => (
          <Button key={keyOf(m)} variant="light" onClick={() => onPick(m)}>
            {linkName(m)}
          </Button>
        ))}
      </div>
    </Empty>
  );
}

/** Takes over the models and the prompt of a link, once, and returns the names that no model has. */
function useLink(
  models: readonly Model[],
  loaded: boolean,
  columns: readonly DraftColumn[],
  change: (draft: { prompt?: string; columns?: DraftColumn[] }) => void,
) {
  const search = useSearch({ from: "/frame/chat" });
  const navigate = useNavigate({ from: "/chat" });
  const [missing, setMissing] = useState<string[]>([]);
  const latest = useRef(columns);
  latest.current = columns;
  useEffect(() => {
    if (!loaded || (search.models === undefined && search.prompt === undefined)) return;
    const link = fromLink(search.models ?? "", models);
    setMissing(link.missing);
    const wanted = link.found
      .slice(0, mostColumns)
      .map((model, key): DraftColumn => ({ key, model, parameters: noParameters }));
    change({
      ...(wanted.length > 0 ? { columns: wanted } : {}),
      ...(search.prompt === undefined ? {} : { prompt: search.prompt }),
    });
    void navigate({ search: {}, replace: true });
  }, [loaded, search.models, search.prompt]);
  return missing;
}
