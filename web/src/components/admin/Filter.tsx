import { Select, TextInput } from "@mantine/core";
import { useDebouncedCallback } from "@mantine/hooks";
import { useState } from "react";

/** A text field that filters a list while the user types. The key / focuses it. */
export function FilterBox({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string;
  onChange: (text: string) => void;
}) {
  const [typed, setTyped] = useState(value);
  const listener = useDebouncedCallback(onChange, 200);
  return (
    <TextInput
      data-filter
      type="search"
      placeholder={`${label}  /`}
      aria-label={label}
      w={230}
      value={typed}
      onChange={(e) => {
        setTyped(e.currentTarget.value);
        listener(e.currentTarget.value.trim());
      }}
    />
  );
}

export interface Option {
  value: string;
  label: string;
}

/** Selects one of a few values, or any. */
export function FilterSelect({
  label,
  any,
  value,
  options,
  onChange,
}: {
  label: string;
  any: string;
  value: string | undefined;
  options: Option[];
  onChange: (value: string | undefined) => void;
}) {
  return (
    <Select
      aria-label={label}
      w={150}
      allowDeselect={false}
      value={value ?? ""}
      data={[{ value: "", label: any }, ...options]}
      onChange={(v) => onChange(v || undefined)}
    />
  );
}
