import { SegmentedControl, TextInput } from "@mantine/core";
import { t } from "../../i18n";
import type { LaunchDraft } from "./request";

interface Props {
  draft: Pick<LaunchDraft, "mode" | "command" | "array">;
  arrayError?: string;
  error?: string;
  onChange: (more: Partial<LaunchDraft>) => void;
}

/** Selects an interactive session, or a batch session with its command. */
export function SessionType({ draft, error, arrayError, onChange }: Props) {
  return (
    <fieldset className="legendless">
      <legend>{t("Session type")}</legend>
      <SegmentedControl
        aria-label={t("Session type")}
        value={draft.mode}
        onChange={(mode) => onChange({ mode: mode as LaunchDraft["mode"] })}
        data={[
          { value: "INTERACTIVE", label: t("Interactive") },
          { value: "BATCH", label: t("Batch command") },
        ]}
      />
      {draft.mode === "BATCH" ? (
        <TextInput
          mt={8}
          label={t("Command")}
          className="mono"
          placeholder="python3 train.py"
          value={draft.command}
          error={error}
          onChange={(e) => onChange({ command: e.currentTarget.value })}
        />
      ) : null}
      {draft.mode === "BATCH" ? (
        <TextInput
          mt={8}
          label={t("Array")}
          description={t(
            "Indexes of one session each, such as 1-100 or 1,3,7; %8 at the end runs at most 8 at once. Empty: one session.",
          )}
          value={draft.array}
          error={arrayError}
          onChange={(e) => onChange({ array: e.currentTarget.value })}
        />
      ) : null}
    </fieldset>
  );
}
