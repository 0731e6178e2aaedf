import { NumberInput } from "@mantine/core";
import { t } from "../../i18n";
import { largest } from "../device/largest";
import { type LaunchDraft, withAmounts } from "./request";
import { Share } from "./Share";
import type { Offer } from "./useOffer";

interface Props {
  offer: Offer;
  draft: LaunchDraft;
  wrong: Record<string, string>;
  onChange: (more: Partial<LaunchDraft>) => void;
}

/** Edits exact amounts of CPU, memory and an accelerator. A change replaces the preset. */
export function Amounts({ offer, draft, wrong, onChange }: Props) {
  const type = offer.typeOf(draft.slot);
  const set = (more: Parameters<typeof withAmounts>[0]) => onChange(withAmounts(more));
  return (
    <>
      <div className="row" style={{ alignItems: "flex-start" }}>
        <NumberInput
          label={t("CPU")}
          w={110}
          min={0}
          step={1}
          decimalScale={3}
          value={draft.cpu}
          error={wrong["slots.cpu"] && t(wrong["slots.cpu"])}
          onChange={(v) => set({ cpu: Number(v) || 0 })}
        />
        <NumberInput
          label={t("Memory, GiB")}
          w={130}
          min={0}
          step={1}
          decimalScale={3}
          value={draft.mem}
          error={wrong["slots.mem"] && t(wrong["slots.mem"])}
          onChange={(v) => set({ mem: Number(v) || 0 })}
        />
      </div>
      {offer.slots.length > 0 ? (
        <Share
          slots={offer.slots}
          slot={draft.slot}
          share={draft.share}
          most={largest(offer.agents, draft.slot)}
          quantum={Number(type?.quantum ?? 1)}
          counts={type?.allowedCounts ?? []}
          error={wrong.slots && t(wrong.slots)}
          onSlot={(slot) => set({ slot, share: 0 })}
          onShare={(share) => set({ share })}
        />
      ) : wrong.slots ? (
        <p className="bad">{wrong.slots}</p>
      ) : null}
    </>
  );
}
