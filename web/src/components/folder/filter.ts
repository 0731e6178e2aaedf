import type { VariablesOf } from "../../api/graphql";
import type { FoldersQuery } from "./folder";

const shows = ["mine", "project", "shared", "others", "trash"] as const;
const modes = ["GENERAL", "DATA", "MODEL"] as const;
const anId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

export type Show = (typeof shows)[number];

/** The filter of the Data page, which is kept in the URL. */
export interface FolderFilter {
  q?: string;
  show?: Show;
  mode?: (typeof modes)[number];
  /** User and project IDs: show only the folders of one of them. */
  owner?: string;
  project?: string;
}

const id = (value: unknown) => (typeof value === "string" && anId.test(value) ? value : undefined);

export const foldersOf = (search: Record<string, unknown>): FolderFilter => ({
  q: typeof search.q === "string" && search.q !== "" ? search.q : undefined,
  show: shows.find((k) => k === search.show),
  mode: modes.find((m) => m === search.mode),
  owner: id(search.owner),
  project: id(search.project),
});

/** Reports whether a view can be filtered by owner or by project. */
export const narrows = {
  owner: (show: Show | undefined) => show === undefined || show === "others" || show === "trash",
  project: (show: Show | undefined) => show === undefined || show === "project" || show === "trash",
};

type Where = NonNullable<VariablesOf<typeof FoldersQuery>["where"]>;

/** Returns the filter as a condition for the server. */
export const whereOf = ({ q, show, mode, owner, project }: FolderFilter): Where => ({
  statusIn: show === "trash" ? ["TRASH", "DELETING"] : ["READY", "CLONING"],
  ...(q ? { nameContainsFold: q } : {}),
  ...(show && show !== "trash" ? { kind: show.toUpperCase() as Where["kind"] } : {}),
  ...(mode ? { usageMode: mode } : {}),
  ...(owner && narrows.owner(show) ? { ownerID: owner } : {}),
  ...(project && narrows.project(show) ? { projectID: project } : {}),
});
