import { Button, TextInput } from "@mantine/core";
import { useState } from "react";
import { useSlotTypes } from "../../../hooks/useSlotTypes";
import { t } from "../../../i18n";
import { slotName } from "../../../slots";
import { bySlot, isMemory } from "../../format";
import type { SlotTexts } from "./amounts";

interface Props {
  legend: string;
  hint?: string;
  value: SlotTexts;
  /** Error messages by slot. The one for "" is about all slots. */
  wrong: Record<string, string | undefined>;
  /** Whether the user can add slots that no machine has yet. */
  free?: boolean;
  onChange: (value: SlotTexts) => void;
}

/** Edits an amount per slot, each in its unit. An empty field means no amount. */
export function SlotsInput({ legend, hint, value, wrong, free, onChange }: Props) {
  const [another, setAnother] = useState("");
  const types = useSlotTypes();
  const slots = [...new Set([...types.keys(), ...Object.keys(value)])].sort(bySlot);
  const name = another.trim();
  function add() {
    if (!name) return;
    onChange({ ...value, [name]: value[name] ?? "" });
    setAnother("");
  }
  return (
    <fieldset className="legendless stack small">
      <legend>{legend}</legend>
      {hint ? <p className="dim">{hint}</p> : null}
      <div className="pairs">
        {slots.map((slot) => {
          // The user can type a size with another unit.
          const unit = isMemory(slot) ? (/[a-z]/i.test(value[slot] ?? "") ? "" : "GiB") : (types.get(slot)?.unit ?? "");
          return (
            <TextInput
              key={slot}
              label={slotName(slot)}
              aria-label={`${legend}: ${slotName(slot)}`}
              title={slot}
              value={value[slot] ?? ""}
              error={wrong[slot]}
              rightSection={unit ? <span className="dim">{unit}</span> : null}
              rightSectionWidth={unit ? 8 * unit.length + 14 : 0}
              rightSectionPointerEvents="none"
              onChange={(e) => onChange({ ...value, [slot]: e.currentTarget.value })}
            />
          );
        })}
      </div>
      {wrong[""] ? (
        <p className="bad" role="alert">
          {wrong[""]}
        </p>
      ) : null}
      {free ? (
        <div className="row">
          <TextInput
            aria-label={t("Add a resource: {{legend}}", { legend })}
            placeholder={t("Add a resource, such as cuda.shares")}
            w={250}
            value={another}
            onChange={(e) => setAnother(e.currentTarget.value)}
            onKeyDown={(e) => {
              if (e.key === "Enter") {
                e.preventDefault();
                add();
              }
            }}
          />
          <Button variant="default" disabled={!name} onClick={add}>
            {t("Add")}
          </Button>
        </div>
      ) : null}
    </fieldset>
  );
}

/** Returns the errors of the slots of one input field, by slot. */
export const wrongSlots = (
  field: string,
  ...all: Record<string, string | undefined>[]
): Record<string, string | undefined> =>
  Object.fromEntries(
    all.flatMap((wrong) =>
      Object.entries(wrong).flatMap(([key, why]) =>
        key === field ? [["", why]] : key.startsWith(`${field}.`) ? [[key.slice(field.length + 1), why]] : [],
      ),
    ),
  );
