import { quote } from "../format";
import { type Folder, ownerOf, type Whose } from "./folder";

/** Returns the path of a folder over WebDAV and SFTP; null if the viewer sees the folder only through a role. */
export function placeOf(folder: Pick<Folder, "name" | "owner" | "project" | "myShare">, of: Whose): string | null {
  if (of === "mine") return `mine/${folder.name}`;
  if (of === "project" && folder.project) return `projects/${folder.project.name}/${folder.name}`;
  const owner = ownerOf(folder);
  return of === "shared" && owner ? `shared/${owner}/${folder.name}` : null;
}

/** Returns a path for a URL, with each name escaped. */
export const inURL = (path: string) => path.split("/").map(encodeURIComponent).join("/");

/** Returns shell commands for the directory that the user has open; with writes, also for an upload. */
export function commands(name: string, path: string, writes: boolean): { what: string; line: string }[] {
  const there = quote(`${name}:${path}`);
  return [
    { what: "Download", line: `berth folder get ${there}` },
    ...(writes
      ? [
          { what: "Upload", line: `berth folder put ${there} ./data` },
          { what: "Mirror a local directory", line: `berth folder sync ./data ${there}` },
        ]
      : []),
  ];
}
