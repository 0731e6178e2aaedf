import { t } from "../../i18n";
import { type Folder, ownerOf } from "./folder";
import { permissionWord } from "./share";

/** What the viewer may do with a folder and why, and into which sessions it comes by itself. */
export function Standing({ folder, writes }: { folder: Folder; writes: boolean }) {
  const { project, myShare, status, name } = folder;
  const mine = myShare?.status === "accepted" ? myShare : null;
  const told = [
    ...(project ? [t("A folder of the project {{project}}: its members may {{what}}.", { project: project.name, what: t(permissionWord(folder.permission)) })] : []),
    ...(project && !mine && writes && folder.permission === "read_only" ? [t("You may also change its files, because you lead the project or administer it.")] : []),
    ...(project && mine ? [t("You have a right of your own, which comes before that: you may {{what}}.", { what: t(permissionWord(mine.permission)) })] : []),
    ...(!project && mine ? [t("{{who}} shares it with you: you may {{what}}.", { who: ownerOf(folder) ?? t("somebody"), what: t(permissionWord(mine.permission)) })] : []),
    ...(status === "ready" && !writes && !mine ? [t("You may read the files here, not change them.")] : []),
    ...(folder.autoMount ? [autoMounted(name, project?.name)] : []),
  ];
  return told.length > 0 ? <p className="dim">{told.join(" ")}</p> : null;
}

/** What becomes of a folder whose name begins with a dot. */
export const autoMounted = (name: string, project?: string) =>
  project
    ? t("Because its name begins with a dot, every new session in {{project}} has it as {{path}} by itself.", { project, path: `/home/work/${name}` })
    : t("Because its name begins with a dot, every new session of its owner has it as {{path}} by itself.", { path: `/home/work/${name}` });
