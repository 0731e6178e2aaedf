/** A folder, directory or quota scope on a volume that nothing in the database refers to. */
export interface Orphan {
  /** A phrase to translate. */
  what: string;
  /** Its path or its name on the volume. */
  name: string;
  usedBytes: number | null;
  /** The input that removes it; null if only an operator can remove it. */
  input: { scope: string; folder?: string } | null;
}

interface OrphanReport {
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

/** Returns the orphans, folders first, because a scope can be removed only after its folders. */
export const orphansOf = (report: OrphanReport): Orphan[] => [
  ...report.folders.map((f) => ({
    what: states[f.state] ?? f.state,
    name: f.path,
    usedBytes: null,
    input: anId.test(f.scope) && anId.test(f.folder) ? { scope: f.scope, folder: f.folder } : null,
  })),
  ...report.scopes.map((s) => ({
    what: "a scope without an owner",
    name: s.scope,
    usedBytes: s.usedBytes,
    input: anId.test(s.scope) ? { scope: s.scope } : null,
  })),
];
