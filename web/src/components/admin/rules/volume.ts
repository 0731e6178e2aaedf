import { type ResultOf, graphql } from "../../../api/graphql";

export const VolumeFields = graphql(`
  fragment VolumeFields on Volume {
    id name backend health healthMessage totalBytes usedBytes totalInodes usedInodes elastic enforcement capabilities proxy permissions
    performance { wholeCluster at windowSeconds readOpsPerSecond writeOpsPerSecond readBytesPerSecond writeBytesPerSecond readLatencyMicros writeLatencyMicros }
    grants { id everybody domain { id name } project { id name } user { id email } permissions }
  }
`);
export type Volume = ResultOf<typeof VolumeFields>;
export type VolumeGrant = Volume["grants"][number];
export type Atom = VolumeGrant["permissions"][number];

/** What folders of a volume may be used for, in the order in which it is shown. */
export const atoms = [
  { value: "create_folder", label: "make folders" },
  { value: "modify_folder", label: "change folders" },
  { value: "delete_folder", label: "delete folders" },
  { value: "mount", label: "mount them" },
  { value: "upload", label: "upload" },
  { value: "download", label: "download" },
  { value: "invite", label: "invite others" },
  { value: "set_user_permission", label: "say what others may" },
] as const satisfies readonly { value: Atom; label: string }[];

/** What a grant gives, as phrases to translate. */
export function given(permissions: readonly Atom[]): string[] {
  if (permissions.length === 0) return ["nothing"];
  if (permissions.length === atoms.length) return ["everything"];
  return atoms.filter((a) => permissions.includes(a.value)).map((a) => a.label);
}

const capabilities: Record<string, [word: string, hint: string]> = {
  scope: ["quota scopes", "Keeps the folders of each user and project apart."],
  "quota-bytes": ["limit of bytes", "Takes a limit for one scope."],
  "quota-inodes": ["limit of files", "Takes a limit of how many files a scope has."],
  "usage-fast": ["usage at once", "Tells what a scope or a folder uses without walking through it."],
  capacity: ["capacity", "Tells how much room there is in all."],
  metrics: ["pace", "Tells how fast it reads and writes now."],
  copy: ["copies", "Copies trees by itself."],
  delete: ["deletions", "Deletes trees by itself."],
  scan: ["lists trees", "Lists and counts trees by itself."],
  clone: ["clones at once", "Clones a folder by sharing its blocks, whatever its size."],
  "per-scope-mount": ["a mount for each scope", "Each scope is a file system of its own."],
  "list-scopes": ["lists scopes", "Tells which scopes there are, so that orphans are found."],
};

/** A capability of a volume, as phrases to translate. */
export const capabilityWord = (c: string) => capabilities[c]?.[0] ?? c.replaceAll(/[-_]/g, " ");
export const capabilityHint = (c: string) => capabilities[c]?.[1] ?? "";
