import { Select } from "@mantine/core";
import { t } from "../../i18n";
import { stateWord } from "../../words";
import { Status } from "../Status";
import type { Model } from "./chat";
import { keyOf, linkName } from "./models";

interface Props {
  label: string;
  models: readonly Model[];
  value?: Model | null;
  /** Shows the label only to screen readers. */
  quiet?: boolean;
  disabled?: boolean;
  onPick: (model: Model) => void;
}

/** Selects a model: deployments with their state, then the models of endpoints. */
export function ModelPick({ label, models, value, quiet, disabled, onPick }: Props) {
  const option = (m: Model) => ({ value: keyOf(m), label: linkName(m) });
  const chosen = value ? keyOf(value) : null;
  const known = models.some((m) => keyOf(m) === chosen);
  const group = (name: string, all: readonly Model[]) =>
    all.length > 0 ? [{ group: name, items: all.map(option) }] : [];
  const data = [
    ...group(
      t("Deployments"),
      models.filter((m) => m.deployment),
    ),
    ...group(
      t("Endpoints"),
      models.filter((m) => !m.deployment),
    ),
    ...(value && !known ? group(t("No longer available"), [value]) : []),
  ];
  return (
    <Select
      {...(quiet ? { "aria-label": label, placeholder: label, w: 190 } : { label })}
      searchable
      clearable={false}
      disabled={disabled}
      value={chosen}
      data={data}
      maxDropdownHeight={320}
      comboboxProps={{ width: 300, position: "bottom-start" }}
      nothingFoundMessage={t("No model has this name")}
      renderOption={({ option: o }) => {
        const model = models.find((m) => keyOf(m) === o.value);
        return (
          <span className="row keep chat-option">
            <span className="clip">{o.label}</span>
            {model?.deployment ? <Status status={model.deployment.status} /> : null}
          </span>
        );
      }}
      onChange={(key) => {
        const model = models.find((m) => keyOf(m) === key);
        if (model) onPick(model);
      }}
    />
  );
}

/** Describes the state of a model in a title. */
export const stateOf = (model: Model | null) =>
  model?.deployment ? stateWord(model.deployment.status) : model?.endpoint ? t("endpoint") : t("no longer available");
