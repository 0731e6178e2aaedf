import { graphql, type ResultOf } from "../../api/graphql";
import { words } from "../../words";
import { TaskFields } from "../task/task";
import { ShareFields } from "./share";

export const HeldFields = graphql(`
  fragment HeldFields on QuotaScope {
    id kind usedBytes limitBytes: effectiveLimitBytes usedInodes limitInodes enforcement
    volume { id name health healthMessage }
  }
`);
export const FolderFields = graphql(
  `
  fragment FolderFields on Vfolder {
    id name status createdAt deletedAt usageMode permission permissions autoMount
    usedBytes fileCount measuredAt lastUsedAt
    owner { id email } project { id name } creator { id email }
    quotaScope { ...HeldFields }
    mountedBy { id version name status }
    myShare { ...ShareFields } tasks { ...TaskFields }
  }
`,
  [HeldFields, ShareFields, TaskFields],
);
export type Folder = ResultOf<typeof FolderFields>;

export const FoldersQuery = graphql(
  `
  query Folders($where: VfolderWhereInput, $first: Int, $after: Cursor) {
    vfolders(first: $first, after: $after, where: $where, orderBy: [{ field: NAME, direction: ASC }]) {
      totalCount pageInfo { hasNextPage endCursor } edges { node { ...FolderFields } }
    }
  }
`,
  [FolderFields],
);
export type Scope = ResultOf<typeof HeldFields>;
export type UsageMode = Folder["usageMode"];

/** The usage modes of folders, in the order in which they are offered. */
export const usageModes = [
  { value: "GENERAL", label: words.VfolderUsageMode.GENERAL },
  { value: "DATA", label: words.VfolderUsageMode.DATA },
  { value: "MODEL", label: words.VfolderUsageMode.MODEL },
] as const satisfies readonly { value: UsageMode; label: string }[];

export const modeWord = (mode: UsageMode) => words.VfolderUsageMode[mode];

export type AccessKind = "mine" | "project" | "shared" | "others";

/** Returns why the viewer sees a folder. */
export function accessKind(folder: Pick<Folder, "owner" | "project" | "myShare">, viewer: string): AccessKind {
  if (folder.project) return "project";
  if (folder.owner?.id === viewer) return "mine";
  return folder.myShare?.status === "ACCEPTED" ? "shared" : "others";
}

/** Returns the owner of a user's folder. If the viewer cannot see the owner, it is the user who invited the viewer. */
export const ownerOf = (folder: Pick<Folder, "owner" | "myShare">): string | null =>
  folder.owner?.email ?? folder.myShare?.inviterEmail ?? null;

export interface HeldScope extends Scope {
  /** The name of the project; null for the viewer's own scope. */
  project: string | null;
}

/** Returns the quota scopes of folders without duplicates; the viewer's own first. */
export function scopesOf(folders: readonly { quotaScope: Scope; project: { name: string } | null }[]): HeldScope[] {
  const byID = new Map(folders.map((f) => [f.quotaScope.id, { ...f.quotaScope, project: f.project?.name ?? null }]));
  return [...byID.values()].sort(
    (a, b) => (a.project ?? "").localeCompare(b.project ?? "") || a.volume.name.localeCompare(b.volume.name),
  );
}

const enforcements: Record<string, string> = {
  HARD: "enforced at every write",
  DELAYED: "enforced with a delay",
  COOPERATIVE: "enforced for uploads, but not for writes in sessions",
  NONE: "not enforced",
};
/** Returns how a limit is enforced, as a phrase to translate. */
export const enforcementWord = (enforcement: string) => enforcements[enforcement] ?? enforcement;

/** Returns the used fraction of a limit, between 0 and 1. */
export const filled = (used: number | null, limit: number | null) =>
  limit === null ? 0 : limit === 0 ? 1 : Math.min(1, (used ?? 0) / limit);
