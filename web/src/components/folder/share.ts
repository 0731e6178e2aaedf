import { graphql, type ResultOf } from "../../api/graphql";
import { words } from "../../words";

export const ShareFields = graphql(`
  fragment ShareFields on VfolderShare {
    id createdAt email permission status answeredAt mine vfolderName inviterEmail
    inviter { id email fullName } user { id email fullName }
  }
`);
export type Share = ResultOf<typeof ShareFields>;
export type FolderPermission = Share["permission"];

/** What one may with a folder, the least first. */
export const permissions = [
  {
    value: "read_only",
    label: words.FolderPermission.read_only,
    hint: "See and download the files, and mount the folder read-only.",
  },
  { value: "read_write", label: words.FolderPermission.read_write, hint: "Also create, change and delete files." },
  {
    value: "read_write_delete",
    label: words.FolderPermission.read_write_delete,
    hint: "Also move the folder to the trash.",
  },
] as const satisfies readonly { value: FolderPermission; label: string; hint: string }[];

/** A phrase to translate. */
export const permissionWord = (p: FolderPermission) => words.FolderPermission[p];

/** As many people as the server invites at once. */
export const mostInvited = 50;

/** Addresses as people paste them: one a line, or with commas, semicolons, names in front and angle brackets. Each once. */
export function addresses(text: string): string[] {
  const found = text
    .split(/[,;\n]+/)
    .flatMap((part) => /<([^<>]*)>/.exec(part)?.[1] ?? part.trim().split(/\s+/))
    .map((a) => a.trim().toLowerCase())
    .filter(Boolean);
  return [...new Set(found)];
}

/** Shares that hold or may come to hold, invitations last. */
export const liveShares = <S extends Pick<Share, "status" | "email">>(shares: readonly S[]): S[] =>
  shares
    .filter((s) => s.status === "pending" || s.status === "accepted")
    .sort((a, b) => Number(a.status === "pending") - Number(b.status === "pending") || a.email.localeCompare(b.email));
