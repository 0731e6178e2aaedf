import { Link } from "@tanstack/react-router";
import type { ReactNode } from "react";
import { useViewer } from "../../hooks/useViewer";
import { language, t } from "../../i18n";
import { stateWord } from "../../words";
import { bytes, when } from "../format";
import { autoMountText } from "./FolderAccess";
import { FolderTasks } from "./FolderTasks";
import { accessKind, type Folder, modeWord, ownerOf } from "./folder";
import { permissionWord } from "./share";

const none = <span className="dim">–</span>;

/** Shows folders as rows of a table. */
export function FolderTable({
  rows,
  trash,
  actions,
}: {
  rows: Folder[];
  trash: boolean;
  actions: (folder: Folder) => ReactNode;
}) {
  const me = useViewer().user.id;
  return (
    <div className="panel scroll-x">
      <table className="grid" aria-label={t("Folders")}>
        <thead>
          <tr>
            <th>{t("Folder")}</th>
            <th className="roomy">{t("Owner")}</th>
            <th className="wide">{t("Volume")}</th>
            <th className="num">{t("Size")}</th>
            <th className="num wide">{t("Files")}</th>
            {trash ? null : <th className="wide">{t("Mounted by")}</th>}
            <th className="roomy">{trash ? t("In the trash since") : t("Last used")}</th>
            <th>
              <span className="dim">{t("Actions")}</span>
            </th>
          </tr>
        </thead>
        <tbody>
          {rows.map((f) => (
            <tr key={f.id}>
              <td className="clip">
                {f.status === "READY" ? (
                  <Link to="/data/$id" params={{ id: f.id }}>
                    <b>{f.name}</b>
                  </Link>
                ) : (
                  <>
                    {f.name}{" "}
                    {f.status === "TRASH" ? null : <span className="dim">{stateWord(f.status).toLowerCase()}</span>}
                  </>
                )}
                {f.tasks.length > 0 ? (
                  <FolderTasks tasks={f.tasks} editable={f.permissions.includes("UPDATE")} />
                ) : null}
                {f.autoMount ? (
                  <>
                    {" "}
                    <span className="badge dim" title={autoMountText(f.name, f.project?.name)}>
                      {t("in every session")}
                    </span>
                  </>
                ) : null}
                {f.usageMode === "GENERAL" ? null : (
                  <>
                    {" "}
                    <span className="badge dim">{t(modeWord(f.usageMode))}</span>
                  </>
                )}
              </td>
              <td className="clip roomy">
                {f.project
                  ? t("project {{name}}", { name: f.project.name })
                  : f.owner?.id === me
                    ? t("me")
                    : (ownerOf(f) ?? none)}
                {f.project ? (
                  <div className="dim">{t("members can {{what}}", { what: t(permissionWord(f.permission)) })}</div>
                ) : null}
                {accessKind(f, me) === "shared" ? (
                  <div className="dim">{t("you can {{what}}", { what: t(permissionWord(f.myShare!.permission)) })}</div>
                ) : null}
              </td>
              <td className="wide">{f.quotaScope.volume.name}</td>
              <td
                className="num nowrap"
                title={f.measuredAt ? t("measured {{when}}", { when: when(f.measuredAt) }) : undefined}
              >
                {f.usedBytes === null ? none : bytes(f.usedBytes)}
              </td>
              <td className="num wide">{f.fileCount === null ? none : f.fileCount.toLocaleString(language())}</td>
              {trash ? null : <td className="clip wide">{f.mountedBy.map((s) => s.name).join(", ") || none}</td>}
              <td className="nowrap dim roomy">
                {trash ? (f.deletedAt ? when(f.deletedAt) : "") : f.lastUsedAt ? when(f.lastUsedAt) : t("never")}
              </td>
              <td className="nowrap" style={{ width: 1 }}>
                {actions(f)}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}
