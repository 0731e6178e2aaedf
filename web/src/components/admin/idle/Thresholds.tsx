import { Button, NumberInput, SegmentedControl, TextInput } from "@mantine/core";
import { t } from "../../../i18n";
import { word } from "../../../words";
import type { Draft } from "./checker";

/** Edits the utilization up to which each slot counts as idle. */
export function Thresholds({
  draft,
  error,
  onChange,
}: {
  draft: Draft;
  error?: string;
  onChange: (more: Partial<Draft>) => void;
}) {
  const list = draft.thresholds;
  const change = (at: number, more: Partial<Draft["thresholds"][number]>) =>
    onChange({ thresholds: list.map((x, i) => (i === at ? { ...x, ...more } : x)) });
  return (
    <fieldset className="legendless stack small">
      <legend>{t("Idle thresholds")}</legend>
      {list.map((x, i) => (
        <div key={i} className="row" style={{ alignItems: "flex-end" }}>
          <TextInput
            w={160}
            aria-label={t("Slot {{n}}", { n: i + 1 })}
            placeholder={t("such as cpu or cuda")}
            value={x.slot}
            onChange={(e) => change(i, { slot: e.currentTarget.value })}
          />
          <NumberInput
            w={110}
            aria-label={t("Percent of slot {{n}}", { n: i + 1 })}
            min={0}
            max={100}
            decimalScale={2}
            suffix=" %"
            value={x.percent}
            onChange={(percent) => change(i, { percent })}
          />
          {list.length > 1 ? (
            <Button
              variant="subtle"
              color="red"
              size="compact-sm"
              aria-label={t("Remove slot {{n}}", { n: i + 1 })}
              onClick={() => onChange({ thresholds: list.filter((_, k) => k !== i) })}
            >
              {t("Remove")}
            </Button>
          ) : null}
        </div>
      ))}
      {error ? (
        <p className="bad" role="alert">
          {error}
        </p>
      ) : null}
      <div className="row">
        <Button
          variant="default"
          size="compact-sm"
          onClick={() => onChange({ thresholds: [...list, { slot: "", percent: 5 }] })}
        >
          {t("Add another")}
        </Button>
        {list.length > 1 ? (
          <SegmentedControl
            aria-label={t("With several thresholds")}
            value={draft.match}
            onChange={(match) => onChange({ match: match as Draft["match"] })}
            data={[
              { value: "ALL", label: word("IdleMatch", "ALL") },
              { value: "ANY", label: word("IdleMatch", "ANY") },
            ]}
          />
        ) : null}
      </div>
    </fieldset>
  );
}
