const kinds = ["mine", "project", "shared", "others", "trash"] as const;
const modes = ["general", "data", "model"] as const;

/** What the Data page shows, as its address says it. */
export interface FolderFilter {
  q?: string;
  show?: (typeof kinds)[number];
  mode?: (typeof modes)[number];
}

export const foldersOf = (search: Record<string, unknown>): FolderFilter => ({
  q: typeof search.q === "string" && search.q !== "" ? search.q : undefined,
  show: kinds.find((k) => k === search.show),
  mode: modes.find((m) => m === search.mode),
});
