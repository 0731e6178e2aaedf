import { SegmentedControl, TextInput } from "@mantine/core";
import { t } from "../../i18n";
import type { Wish } from "./request";

interface Props {
  wish: Pick<Wish, "mode" | "command" | "array">;
  arrayError?: string;
  error?: string;
  onChange: (more: Partial<Wish>) => void;
}

/** Selects an interactive session, or a batch session with its command. */
export function SessionType({ wish, error, arrayError, onChange }: Props) {
  return (
    <fieldset className="legendless">
      <legend>{t("Session type")}</legend>
      <SegmentedControl
        aria-label={t("Session type")}
        value={wish.mode}
        onChange={(mode) => onChange({ mode: mode as Wish["mode"] })}
        data={[
          { value: "INTERACTIVE", label: t("Interactive") },
          { value: "BATCH", label: t("Batch command") },
        ]}
      />
      {wish.mode === "BATCH" ? (
        <TextInput
          mt={8}
          label={t("Command")}
          className="mono"
          placeholder="python3 train.py"
          value={wish.command}
          error={error}
          onChange={(e) => onChange({ command: e.currentTarget.value })}
        />
      ) : null}
      {wish.mode === "BATCH" ? (
        <TextInput
          mt={8}
          label={t("Array")}
          description={t(
            "Indexes of one session each, such as 1-100 or 1,3,7; %8 at the end runs at most 8 at once. Empty: one session.",
          )}
          value={wish.array}
          error={arrayError}
          onChange={(e) => onChange({ array: e.currentTarget.value })}
        />
      ) : null}
    </fieldset>
  );
}
