import { Button, Modal, NumberInput, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { useFocusBack } from "../../hooks/useFocusBack";
import { t } from "../../i18n";
import type { Model, Parameters } from "./chat";
import { ModelPick } from "./ModelPick";
import { keyOf } from "./models";
import {
  draftOf,
  type Field,
  noParameters,
  numberFields,
  numbers,
  type ParametersDraft,
  parametersOf,
  problemsOf,
} from "./params";

interface Props {
  title: string;
  models: readonly Model[];
  model: Model;
  parameters: Parameters;
  /** The model cannot be changed, as in a replay. */
  fixed?: boolean;
  onClose: () => void;
  onSave: (model: Model, parameters: Parameters) => void;
}

/** The model of a column and how it is asked. Each parameter can be left empty. */
export function ColumnDialog({ title, models, model: initial, parameters, fixed, onClose, onSave }: Props) {
  useFocusBack();
  const [model, setModel] = useState(initial);
  const [draft, setDraft] = useState<ParametersDraft>(() => draftOf(parameters));
  const [tried, setTried] = useState(false);
  const problems = problemsOf(draft);
  const set = (field: Field) => (value: string) => setDraft((old) => ({ ...old, [field]: value }));
  const error = (field: Field) => {
    const problem = problems[field];
    return tried && problem ? t(problem.text, problem.values) : undefined;
  };
  return (
    <Modal opened onClose={onClose} size="lg" title={title} closeButtonProps={{ "aria-label": t("Close") }}>
      <form
        className="stack"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          event.stopPropagation();
          setTried(true);
          if (Object.keys(problems).length === 0) onSave(model, parametersOf(draft));
        }}
      >
        {fixed ? null : <ModelFields models={models} model={model} onModel={setModel} />}
        <Textarea
          label={t("System prompt")}
          description={t("Instruction before the conversation")}
          autosize
          minRows={2}
          maxRows={10}
          value={draft.system}
          error={error("system")}
          onChange={(e) => set("system")(e.currentTarget.value)}
        />
        <div className="pairs">
          {numberFields.map((field) => (
            <TextInput
              key={field}
              label={t(numbers[field].label)}
              placeholder={t("default")}
              inputMode="decimal"
              value={draft[field]}
              error={error(field)}
              onChange={(e) => set(field)(e.currentTarget.value)}
            />
          ))}
        </div>
        <Textarea
          label={t("Stop at")}
          description={t("Texts that end an answer, one in each line; \\n is a line break")}
          autosize
          minRows={1}
          maxRows={4}
          value={draft.stop}
          error={error("stop")}
          onChange={(e) => set("stop")(e.currentTarget.value)}
        />
        <Textarea
          label={t("JSON schema of the answer")}
          autosize
          minRows={2}
          maxRows={12}
          classNames={{ input: "mono" }}
          value={draft.schema}
          error={error("schema")}
          onChange={(e) => set("schema")(e.currentTarget.value)}
        />
        <div className="row">
          <Button variant="subtle" onClick={() => setDraft(draftOf(noParameters))}>
            {t("Unset all")}
          </Button>
          <Button className="push" variant="default" onClick={onClose}>
            {t("Cancel")}
          </Button>
          <Button type="submit">{t("Save")}</Button>
        </div>
      </form>
    </Modal>
  );
}

/** The model, and for a deployment the revision. */
export function ModelFields({
  models,
  model,
  onModel,
}: {
  models: readonly Model[];
  model: Model;
  onModel: (model: Model) => void;
}) {
  return (
    <div className="row" style={{ alignItems: "flex-start" }}>
      <div style={{ flex: 2, minWidth: 180 }}>
        <ModelPick
          label={t("Model")}
          models={models}
          value={model}
          onPick={(m) => onModel(keyOf(m) === keyOf(model) ? model : m)}
        />
      </div>
      {model.deployment ? (
        <NumberInput
          style={{ flex: 1, minWidth: 110 }}
          label={t("Revision")}
          placeholder={t("any")}
          min={1}
          allowDecimal={false}
          value={model.revision ?? ""}
          onChange={(n) => onModel({ ...model, revision: typeof n === "number" && n > 0 ? n : null })}
        />
      ) : null}
    </div>
  );
}
