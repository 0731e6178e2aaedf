/** What lies on a volume and belongs to nobody. */
export interface Orphan {
  /** A phrase to translate. */
  what: string;
  /** Where it lies, or what it is called there. */
  name: string;
  usedBytes: number | null;
  /** How it is named to be removed; null for what only an operator can. */
  input: { scope: string; folder?: string } | null;
}

interface Told {
  scopes: readonly { scope: string; usedBytes: number | null }[];
  folders: readonly { state: string; scope: string; folder: string; path: string }[];
}

const states: Record<string, string> = {
  PRESENT: "an unknown folder",
  ARRIVING: "an incomplete folder",
  DELETING: "a partly deleted folder",
  UNKNOWN: "not created by Berth",
};
const anId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** What was found, folders first: a scope goes only when its folders have gone. */
export const orphansOf = (told: Told): Orphan[] => [
  ...told.folders.map((f) => ({
    what: states[f.state] ?? f.state,
    name: f.path,
    usedBytes: null,
    input: anId.test(f.scope) && anId.test(f.folder) ? { scope: f.scope, folder: f.folder } : null,
  })),
  ...told.scopes.map((s) => ({
    what: "a scope without an owner",
    name: s.scope,
    usedBytes: s.usedBytes,
    input: anId.test(s.scope) ? { scope: s.scope } : null,
  })),
];
