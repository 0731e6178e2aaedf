import { quote } from "../format";
import { type Folder, ownerOf, type Whose } from "./folder";

/** Where a folder stands in the tree that WebDAV and SFTP show; null for one that is only seen by a role. */
export function placeOf(folder: Pick<Folder, "name" | "owner" | "project" | "myShare">, of: Whose): string | null {
  if (of === "mine") return `mine/${folder.name}`;
  if (of === "project" && folder.project) return `projects/${folder.project.name}/${folder.name}`;
  const owner = ownerOf(folder);
  return of === "shared" && owner ? `shared/${owner}/${folder.name}` : null;
}

/** A path in a URL: each name by itself. */
export const inURL = (path: string) => path.split("/").map(encodeURIComponent).join("/");

/** What to type at a command line, in the directory of the folder that one looks at; with writes, also what sends files. */
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
