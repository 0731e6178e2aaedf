import { t } from "./i18n";

/** A kind of resource, as the server describes it. */
export interface SlotType {
  name: string;
  displayName: string;
}

let names = new Map<string, string>();

/** Takes the display names of all slots. The frame calls it before it shows a page. */
export function nameSlots(types: readonly SlotType[]) {
  const sharing = (type: SlotType) => types.filter((other) => other.displayName === type.displayName).length > 1;
  names = new Map(
    types
      .filter((type) => type.displayName)
      .map((type) => [type.name, sharing(type) ? distinct(type) : type.displayName]),
  );
}

/** Adds what tells a slot from others of its display name: "GPU (MIG) 3g.40gb", or else the vendor's part of its key. */
function distinct({ name, displayName }: SlotType): string {
  const profile = name.split(":")[1];
  if (!profile) return `${displayName} (${name.split(".")[0]})`;
  const [, rest, kind] = /^(.+)-(\w+)$/.exec(profile) ?? [];
  return `${displayName} ${kind && displayName.toLowerCase().includes(kind.toLowerCase()) ? rest : profile}`;
}

/** What people call a slot. Of one that the server has not named, the readable part of its key. */
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

/** A sentence of the server with the names of slots in place of their keys, such as cuda.shares. */
export const withSlotNames = (sentence: string): string =>
  sentence.replace(/[a-z][\w-]*\.[a-z]\w*(?::[\w.-]*\w)?/g, (key) => names.get(key) ?? key);
