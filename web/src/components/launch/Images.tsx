import { TextInput } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { t } from "../../i18n";
import { bytes, slotsLine } from "../format";
import { shortName } from "../image/name";
import { FailureNote } from "../Note";
import { NoImage } from "./NoImage";
import { Tiles } from "./Tiles";
import { type Offer, useImageSearch } from "./useOffer";

interface Props {
  offer: Offer;
  chosen: string;
  error?: string;
  onChoose: (reference: string) => void;
}

/** The number of tiles; more images are found by a search. */
const shown = 12;

/** Shows images with their size and minimum resources: the first of the offer, or those that a search finds. */
export function Images({ offer, chosen, error, onChoose }: Props) {
  const [text, setText] = useState("");
  const [settled] = useDebouncedValue(text.trim(), 200);
  const found = useImageSearch(settled);
  if (offer.loaded && offer.images.length === 0) return <NoImage />;
  const images = found ? found.images : withChosen(offer.images, chosen);
  return (
    <div className="stack tight">
      {offer.imageCount > shown ? (
        <TextInput
          size="xs"
          aria-label={t("Search images")}
          placeholder={t("Search {{count}} images", { count: offer.imageCount })}
          value={text}
          onChange={(e) => setText(e.currentTarget.value)}
        />
      ) : null}
      <Choice images={images} chosen={chosen} error={error} onChoose={onChoose} />
      <FailureNote failure={found?.failure ?? null} />
      {found?.total === 0 ? <p className="dim">{t("No image has this name.")}</p> : null}
      {found?.total && found.total > shown ? (
        <p className="dim">{t("{{count}} images have this text; these are the first.", { count: found.total })}</p>
      ) : null}
    </div>
  );
}

/** The first images of the offer, with the chosen one. */
function withChosen(images: Offer["images"], chosen: string) {
  const first = images.slice(0, shown);
  const one = images.slice(shown).find((i) => i.reference === chosen);
  return one ? [one, ...first.slice(0, shown - 1)] : first;
}

function Choice({ images, chosen, error, onChoose }: Omit<Props, "offer"> & { images: Offer["images"] }) {
  return (
    <Tiles
      first
      label={t("Image")}
      chosen={chosen}
      onChoose={onChoose}
      error={error}
      tiles={images.map((i) => ({
        key: i.reference,
        title: shortName(i.name),
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
