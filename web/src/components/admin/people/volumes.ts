import type { Viewer } from "../../../hooks/useViewer";
import { administers } from "../../../hooks/useViewer";
import { t } from "../../../i18n";

export const atoms = ["create_folder", "modify_folder", "delete_folder", "mount", "upload", "download", "invite", "set_user_permission"] as const;
export type Atom = (typeof atoms)[number];

export const atomNames: Record<Atom, string> = {
  create_folder: "create folders", modify_folder: "rename and move folders", delete_folder: "delete folders", mount: "mount into sessions",
  upload: "upload files", download: "download files", invite: "invite others", set_user_permission: "say what others may",
};

/** A grant as far as it says to whom it is. */
interface Grant {
  everybody: boolean;
  domain: { id: string } | null;
  project: { id: string } | null;
  user: { id: string } | null;
}

/** The grant of one holder, and the one for everybody. */
export const grantsTo = <G extends Grant>(grants: readonly G[], holder: { kind: "domain" | "project" | "user"; id: string }) => ({
  own: grants.find((g) => g[holder.kind]?.id === holder.id) ?? null,
  everybody: grants.find((g) => g.everybody) ?? null,
});

/** Permissions as people say them. */
export const said = (list: readonly Atom[]) =>
  list.length === 0 ? t("nothing") : list.length === atoms.length ? t("everything") : atoms.filter((a) => list.includes(a)).map((a) => t(atomNames[a])).join(", ");

/** Whether the server lists who uses a volume. */
export const seesVolumes = (viewer: Viewer) => administers(viewer);
