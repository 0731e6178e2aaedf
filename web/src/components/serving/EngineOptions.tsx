import { NumberInput, Select, TextInput } from "@mantine/core";
import { t } from "../../i18n";
import type { Variant } from "./serving";

type Option = Variant["options"][number];

interface Props {
  variant: Variant;
  values: Record<string, string>;
  wrong: Record<string, string>;
  onChange: (values: Record<string, string>) => void;
}

/** Edits the options of an engine. An empty one has the engine's default. */
export function EngineOptions({ variant, values, wrong, onChange }: Props) {
  if (variant.options.length === 0) return null;
  return (
    <details className="more" open={Object.keys(values).length > 0 || Object.keys(wrong).length > 0 || undefined}>
      <summary>{t("Options of {{engine}}", { engine: variant.title })}</summary>
      <div className="pairs wider" style={{ paddingTop: 10 }}>
        {variant.options.map((o) => (
          <OptionField
            key={o.name}
            option={o}
            value={values[o.name] ?? ""}
            error={wrong[`options.${o.name}`]}
            onChange={(value) => onChange({ ...values, [o.name]: value })}
          />
        ))}
      </div>
    </details>
  );
}

interface FieldProps {
  option: Option;
  value: string;
  error?: string;
  onChange: (value: string) => void;
}

function OptionField({ option: o, value, error, onChange }: FieldProps) {
  const common = { label: o.name, description: o.help, error };
  if (o.type === "INTEGER" || o.type === "NUMBER") {
    return (
      <NumberInput
        {...common}
        inputWrapperOrder={["label", "input", "description", "error"]}
        placeholder={t("default")}
        allowDecimal={o.type === "NUMBER"}
        {...(o.maximum !== null && o.maximum > (o.minimum ?? 0) ? { min: o.minimum ?? 0, max: o.maximum } : {})}
        value={value}
        onChange={(v) => onChange(String(v))}
      />
    );
  }
  if (o.type === "CHOICE" || o.type === "SWITCH") {
    const choices = o.type === "SWITCH" ? ["true", "false"] : o.choices;
    const names: Record<string, string> = o.type === "SWITCH" ? { true: t("on"), false: t("off") } : {};
    return (
      <Select
        {...common}
        inputWrapperOrder={["label", "input", "description", "error"]}
        allowDeselect={false}
        data={[{ value: "", label: t("default") }, ...choices.map((c) => ({ value: c, label: names[c] ?? c }))]}
        value={value}
        onChange={(v) => onChange(v ?? "")}
      />
    );
  }
  return (
    <TextInput
      {...common}
      inputWrapperOrder={["label", "input", "description", "error"]}
      placeholder={t("default")}
      value={value}
      onChange={(e) => onChange(e.currentTarget.value)}
    />
  );
}
