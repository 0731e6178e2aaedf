import { quote } from "../format";
import { type AccessKind, type Folder, ownerOf } from "./folder";

/** Returns the path of a folder over WebDAV and SFTP; null if the viewer sees the folder only through a role. */
export function remotePath(
  folder: Pick<Folder, "name" | "owner" | "project" | "myShare">,
  of: AccessKind,
): string | null {
  if (of === "mine") return `mine/${folder.name}`;
  if (of === "project" && folder.project) return `projects/${folder.project.name}/${folder.name}`;
  const owner = ownerOf(folder);
  return of === "shared" && owner ? `shared/${owner}/${folder.name}` : null;
}

/** Returns a path for a URL, with each name escaped. */
export const inURL = (path: string) => path.split("/").map(encodeURIComponent).join("/");

/** Returns shell commands for the directory that the user has open; if it is writable, also for an upload. */
export function commands(name: string, path: string, writable: boolean): { what: string; line: string }[] {
  const target = quote(`${name}:${path}`);
  return [
    { what: "Download", line: `berth folder get ${target}` },
    ...(writable
      ? [
          { what: "Upload", line: `berth folder put ${target} ./data` },
          { what: "Mirror a local directory", line: `berth folder sync ./data ${target}` },
        ]
      : []),
  ];
}
