import { Button } from "@mantine/core";
import { useState } from "react";
import { t } from "../../i18n";
import { Status } from "../Status";
import { ColumnDialog } from "./ColumnDialog";
import { type Model, mostColumns, type Parameters } from "./chat";
import { ModelPick, stateOf } from "./ModelPick";
import { labelOf, letter } from "./models";
import { countSet } from "./params";

/** A column as its head shows it. */
export interface Head {
  /** Identifies the column: its number, or a key of a draft. */
  key: number;
  /** Null: hidden until a vote. */
  model: Model | null;
  parameters: Parameters;
  /** The column was removed from the chat, but has answers. */
  removed?: boolean;
  /** The column does not get the next prompt. */
  paused?: boolean;
}

export interface HeadActions {
  onChange: (key: number, model: Model, parameters: Parameters) => void;
  onRemove: (key: number) => void;
  onAdd: (model: Model) => void;
}

/** Returns the name of a column: its model, or a letter while that is hidden. */
export const columnName = (head: Pick<Head, "model">, position: number) =>
  head.model ? labelOf(head.model) : t("Model {{letter}}", { letter: letter(position) });

interface Props {
  heads: readonly Head[];
  models: readonly Model[];
  /** Null: the columns cannot be changed. */
  actions: HeadActions | null;
}

/** The heads of the columns, above their answers. */
export function Heads({ heads, models, actions }: Props) {
  const [edited, setEdited] = useState<number | null>(null);
  const head = heads.find((h) => h.key === edited);
  return (
    <>
      <div className="chat-lanes chat-heads" role="list" aria-label={t("Models of this chat")}>
        {heads.map((h, i) => {
          const name = columnName(h, i);
          const count = countSet(h.parameters);
          return (
            <div key={h.key} className="chat-head" role="listitem" data-removed={h.removed || undefined}>
              <b className="clip" title={`${name} · ${h.model ? stateOf(h.model) : ""}`}>
                {name}
              </b>
              {h.model?.deployment && h.model.deployment.status !== "SERVING" ? (
                <Status status={h.model.deployment.status} />
              ) : null}
              {h.removed ? <span className="dim">{t("removed")}</span> : null}
              {h.paused && !h.removed ? (
                <span className="dim" title={t("It does not get the next prompt.")}>
                  {t("not asked")}
                </span>
              ) : null}
              {actions && !h.removed ? (
                <span className="push row keep tight">
                  <Button
                    variant="subtle"
                    size="compact-xs"
                    aria-label={t("Parameters of {{name}}", { name })}
                    disabled={!h.model}
                    onClick={() => setEdited(h.key)}
                  >
                    {count > 0 ? t("Parameters ({{n}})", { n: count }) : t("Parameters")}
                  </Button>
                  <Button
                    variant="subtle"
                    size="compact-xs"
                    aria-label={t("Remove {{name}}", { name })}
                    onClick={() => actions.onRemove(h.key)}
                  >
                    ×
                  </Button>
                </span>
              ) : null}
            </div>
          );
        })}
      </div>
      {head?.model && actions ? (
        <ColumnDialog
          title={t("Parameters of {{name}}", { name: labelOf(head.model) })}
          models={models}
          model={head.model}
          parameters={head.parameters}
          onClose={() => setEdited(null)}
          onSave={(model, parameters) => {
            actions.onChange(head.key, model, parameters);
            setEdited(null);
          }}
        />
      ) : null}
    </>
  );
}

/** Adds a column, while the chat can have more. */
export function AddColumn({
  count,
  models,
  onAdd,
}: {
  count: number;
  models: readonly Model[];
  onAdd: (model: Model) => void;
}) {
  if (count >= mostColumns) return <span className="dim">{t("A chat can have 8 models.")}</span>;
  return <ModelPick quiet label={t("Add a model")} models={models} value={null} onPick={onAdd} />;
}
