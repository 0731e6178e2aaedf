import { NumberInput, Select } from "@mantine/core";
import { t } from "../../i18n";
import { slotName } from "../../slots";
import { amount, trim } from "../format";
import { amountChoices } from "./request";

interface Props {
  slots: string[];
  slot: string;
  share: number;
  most: number;
  quantum: number;
  /** The only possible amounts; any amount is possible if the list is empty. */
  counts: readonly number[];
  error?: string;
  onSlot: (slot: string) => void;
  onShare: (share: number) => void;
}

/**
 * Selects an amount of an accelerator: a picture of it, buttons for common amounts, and a number field if any amount
 * is possible.
 */
export function Share({ slots, slot, share, most, quantum, counts, error, onSlot, onShare }: Props) {
  const shares = slot.endsWith(".shares");
  return (
    <fieldset className="legendless">
      <legend>{t("Accelerator")}</legend>
      <div className="row" style={{ alignItems: "flex-end", gap: 14 }}>
        <div className="cell small" aria-hidden="true">
          <span className="part mine" style={{ height: `${Math.min(1, share) * 100}%`, minHeight: 0 }} />
        </div>
        <div className="stack small" style={{ flex: 1 }}>
          <div className="chips" role="group" aria-label={t("Amount of {{slot}}", { slot: slotName(slot) })}>
            {amountChoices(slot, most, counts).map((m) => (
              <button key={m} type="button" className="chip" aria-pressed={share === m} onClick={() => onShare(m)}>
                {m === 0 ? t("none") : amount(slot, String(m))}
              </button>
            ))}
          </div>
          <div className="row">
            {slots.length > 1 ? (
              <Select
                aria-label={t("Type of accelerator")}
                w={150}
                data={slots.map((s) => ({ value: s, label: slotName(s) }))}
                value={slot}
                onChange={(s) => s && onSlot(s)}
              />
            ) : (
              <span className="dim">{slotName(slot)}</span>
            )}
            {counts.length > 0 ? null : (
              <NumberInput
                aria-label={t("Exact amount")}
                w={90}
                min={0}
                max={most}
                step={shares ? Math.max(quantum, 0.05) : 1}
                decimalScale={shares ? 3 : 0}
                value={share}
                onChange={(v) => onShare(Math.max(0, Number(v) || 0))}
                error={Boolean(error)}
              />
            )}
            <span className="dim">{t("up to {{most}} on one machine", { most: trim(most.toFixed(3)) })}</span>
          </div>
        </div>
      </div>
      {error ? (
        <p className="bad" role="alert">
          {error}
        </p>
      ) : null}
    </fieldset>
  );
}
