import { t } from "../../i18n";
import { type Folder, ownerOf } from "./folder";
import { permissionWord } from "./share";

/** Shows what the viewer can do with a folder and why, and in which sessions it is mounted automatically. */
export function FolderAccess({ folder, writable }: { folder: Folder; writable: boolean }) {
  const { project, myShare, status, name } = folder;
  const mine = myShare?.status === "ACCEPTED" ? myShare : null;
  const sentences = [
    ...(project
      ? [
          t("A folder of the project {{project}}. Its members can {{what}}.", {
            project: project.name,
            what: t(permissionWord(folder.permission)),
          }),
        ]
      : []),
    ...(project && !mine && writable && folder.permission === "READ_ONLY"
      ? [t("You can also change its files, because you administer the project.")]
      : []),
    ...(project && mine
      ? [
          t("You have your own permission, which takes precedence: you can {{what}}.", {
            what: t(permissionWord(mine.permission)),
          }),
        ]
      : []),
    ...(!project && mine
      ? [
          t("{{who}} shares it with you. You can {{what}}.", {
            who: ownerOf(folder) ?? t("someone"),
            what: t(permissionWord(mine.permission)),
          }),
        ]
      : []),
    ...(status === "READY" && !writable && !mine ? [t("You can read the files here, but not change them.")] : []),
    ...(folder.autoMount ? [autoMountText(name, project?.name)] : []),
  ];
  return sentences.length > 0 ? <p className="dim">{sentences.join(" ")}</p> : null;
}

/** Explains where a folder whose name begins with a dot is mounted. */
export const autoMountText = (name: string, project?: string) =>
  project
    ? t("Its name begins with a dot, so every new session in {{project}} mounts it at {{path}}.", {
        project,
        path: `/home/work/${name}`,
      })
    : t("Its name begins with a dot, so every new session of its owner mounts it at {{path}}.", {
        path: `/home/work/${name}`,
      });
