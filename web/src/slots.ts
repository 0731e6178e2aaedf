import { t } from "./i18n";

/** A kind of resource, as the server describes it. */
export interface SlotType {
  name: string;
  displayName: string;
}

let names = new Map<string, string>();

/** Stores the display names of all slots. The frame calls it before it renders a page. */
export function nameSlots(types: readonly SlotType[]) {
  const sharing = (type: SlotType) => types.filter((other) => other.displayName === type.displayName).length > 1;
  names = new Map(
    types
      .filter((type) => type.displayName)
      .map((type) => [type.name, sharing(type) ? distinct(type) : type.displayName]),
  );
}

/**
 * Returns a display name that is unique, by adding the profile, as in "GPU (MIG) 3g.40gb", or the vendor part of the
 * slot.
 */
function distinct({ name, displayName }: SlotType): string {
  const profile = name.split(":")[1];
  if (!profile) return `${displayName} (${name.split(".")[0]})`;
  const [, rest, kind] = /^(.+)-(\w+)$/.exec(profile) ?? [];
  return `${displayName} ${kind && displayName.toLowerCase().includes(kind.toLowerCase()) ? rest : profile}`;
}

/** Returns the display name of a slot; for a slot unknown to the server, the readable part of its key. */
export function slotName(slot: string): string {
  if (slot === "cpu") return t("CPU");
  if (slot === "mem") return t("Memory");
  return (
    names.get(slot) ??
    slot
      .replace(/\.shares$/, "")
      .replace(/\.device$/, " device")
      .replace(/\.mem$/, " memory")
  );
}

/** Replaces slot keys such as cuda.shares in a message of the server by their display names. */
export const withSlotNames = (sentence: string): string =>
  sentence.replace(/[a-z][\w-]*\.[a-z]\w*(?::[\w.-]*\w)?/g, (key) => names.get(key) ?? key);
