import { t } from "../../i18n";
import { slotsLine } from "../format";
import { PresetFit } from "./PresetFit";
import { type LaunchDraft, withPreset } from "./request";
import { Tiles } from "./Tiles";
import type { Offer } from "./useOffer";

interface Props {
  presets: Offer["presets"];
  draft: LaunchDraft;
  onChange: (more: Partial<LaunchDraft>) => void;
}

/** Selects a preset. Hidden if there are none. */
export function Presets({ presets, draft, onChange }: Props) {
  if (presets.length === 0) return null;
  return (
    <Tiles
      wide
      label={t("Preset")}
      chosen={draft.preset?.id ?? null}
      onChoose={(id) => onChange(withPreset(presets.find((p) => p.id === id)!))}
      tiles={presets.map((p) => ({
        key: p.id,
        title: p.name,
        off: p.fit.state === "NEVER",
        note: (
          <>
            <span className="dim" title={p.description || undefined}>
              {slotsLine(p.slots)}
            </span>
            <PresetFit fit={p.fit} />
          </>
        ),
      }))}
    />
  );
}
