import { Select } from "@mantine/core";
import { t } from "../../i18n";

interface Props {
  label: string;
  description?: string;
  /** The text shown while no option is selected. */
  none: string;
  options: { value: string; label: string }[];
  value: string[];
  error?: string;
  onChange: (value: string[]) => void;
}

/** The most values that a request can contain. */
const maxValues = 32;

/** Selects several values of a list: the box adds one, and the button of a value removes it. */
export function Several({ label, description, none, options, value, error, onChange }: Props) {
  const name = (id: string) => options.find((o) => o.value === id)?.label ?? id;
  return (
    <div className="stack small">
      <Select
        key={value.length}
        label={label}
        description={description}
        placeholder={value.length > 0 ? t("Add another") : none}
        searchable
        openOnFocus={false}
        disabled={value.length >= maxValues}
        nothingFoundMessage={t("No matches")}
        error={error}
        data={options.filter((o) => !value.includes(o.value))}
        value={null}
        onChange={(id) => id && onChange([...value, id])}
      />
      {value.length > 0 ? (
        <div className="chips">
          {value.map((id) => (
            <button
              key={id}
              type="button"
              className="chip"
              aria-label={t("Remove {{name}}", { name: name(id) })}
              onClick={() => onChange(value.filter((x) => x !== id))}
            >
              {name(id)} <span aria-hidden="true">×</span>
            </button>
          ))}
        </div>
      ) : null}
    </div>
  );
}
