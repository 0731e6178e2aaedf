import { Select } from "@mantine/core";
import { t } from "../../i18n";
import type { LaunchDraft } from "./request";
import type { Offer } from "./useOffer";

interface Props {
  offer: Offer;
  draft: LaunchDraft;
  onChange: (more: Partial<LaunchDraft>) => void;
}

/** Selects the app of the image that is opened when the session runs. Hidden if the image has no apps. */
export function OpenApp({ offer, draft, onChange }: Props) {
  const apps = offer.images.find((i) => i.reference === draft.image)?.apps ?? [];
  if (apps.length === 0 || draft.mode !== "INTERACTIVE") return null;
  return (
    <Select
      label={t("Open when it runs")}
      description={t("In a new tab, with the first folder of the session if the app can show folders.")}
      placeholder={t("none")}
      clearable
      clearButtonProps={{ "aria-label": t("Clear") }}
      value={apps.some((a) => a.name === draft.open) ? draft.open : null}
      onChange={(open) => onChange({ open: open ?? "" })}
      data={apps.map((a) => ({ value: a.name, label: a.title }))}
    />
  );
}
