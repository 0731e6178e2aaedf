import { t } from "../../i18n";
import { bytes, slotsLine } from "../format";
import { NoImage } from "./NoImage";
import { Tiles } from "./Tiles";
import type { Offer } from "./useOffer";

interface Props {
  offer: Offer;
  chosen: string;
  error?: string;
  onChoose: (reference: string) => void;
}

/** Shows the first images of the offer, each with its size and its minimum resources. */
export function Images({ offer, chosen, error, onChoose }: Props) {
  if (offer.loaded && offer.images.length === 0) return <NoImage />;
  return (
    <Tiles
      first
      label={t("Image")}
      chosen={chosen}
      onChoose={onChoose}
      error={error}
      tiles={offer.images.slice(0, 12).map((i) => ({
        key: i.reference,
        title: i.name,
        note: (
          <span className="dim">
            {[i.sizeBytes > 0 ? bytes(i.sizeBytes) : "", needs(i.minimumSlots)].filter(Boolean).join(", ")}
            {i.deprecated ? (
              <span className="tone-bad"> {t("Deprecated: {{message}}", { message: i.deprecated })}</span>
            ) : null}
          </span>
        ),
      }))}
    />
  );
}

/** Returns the minimum resources of an image as text; empty if it has none. */
const needs = (minimum: Record<string, string>) =>
  Object.keys(minimum).length > 0 ? t("needs {{slots}}", { slots: slotsLine(minimum) }) : "";
