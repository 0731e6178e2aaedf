import { graphql, type ResultOf } from "../../../api/graphql";
import { words } from "../../../words";

export const VolumeFields = graphql(`
  fragment VolumeFields on Volume {
    id name backend health healthMessage totalBytes usedBytes totalInodes usedInodes elastic enforcement
    capabilities proxy permissions
    performance {
      wholeCluster at windowSeconds readOpsPerSecond writeOpsPerSecond readBytesPerSecond writeBytesPerSecond
      readLatencyMicros writeLatencyMicros
    }
    grants { id everybody domain { id name } project { id name } user { id email } permissions }
  }
`);
export type Volume = ResultOf<typeof VolumeFields>;
export type VolumeGrant = Volume["grants"][number];
export type Atom = VolumeGrant["permissions"][number];

/** The permissions on the folders of a volume, in the order in which they are shown. */
export const atoms = [
  { value: "CREATE_FOLDER", label: words.VolumePermission.CREATE_FOLDER },
  { value: "MODIFY_FOLDER", label: words.VolumePermission.MODIFY_FOLDER },
  { value: "DELETE_FOLDER", label: words.VolumePermission.DELETE_FOLDER },
  { value: "MOUNT", label: words.VolumePermission.MOUNT },
  { value: "UPLOAD", label: words.VolumePermission.UPLOAD },
  { value: "DOWNLOAD", label: words.VolumePermission.DOWNLOAD },
  { value: "INVITE", label: words.VolumePermission.INVITE },
  { value: "SET_USER_PERMISSION", label: words.VolumePermission.SET_USER_PERMISSION },
] as const satisfies readonly { value: Atom; label: string }[];

/** Returns the permissions of a grant, as phrases to translate. */
export function permissionPhrases(permissions: readonly Atom[]): string[] {
  if (permissions.length === 0) return ["nothing"];
  if (permissions.length === atoms.length) return ["everything"];
  return atoms.filter((a) => permissions.includes(a.value)).map((a) => a.label);
}

const capabilities: Record<string, [word: string, hint: string]> = {
  scope: ["quota scopes", "Keeps the folders of each user and project apart."],
  "quota-bytes": ["storage limit", "Enforces a storage limit for each scope."],
  "quota-inodes": ["file limit", "Limits the number of files in each scope."],
  "usage-fast": ["instant usage", "Reports the usage of a scope or a folder without reading all of it."],
  capacity: ["capacity", "Reports the total and the free space."],
  metrics: ["throughput", "Reports the current speed of reads and writes."],
  copy: ["copying", "Copies directory trees itself."],
  delete: ["deletion", "Deletes directory trees itself."],
  scan: ["listing", "Lists directory trees and counts their files itself."],
  clone: ["instant clones", "Clones a folder of any size at once, because both copies share their blocks."],
  "per-scope-mount": ["one mount per scope", "Each scope is a file system of its own."],
  "list-scopes": ["listing of scopes", "Lists all scopes, so that Berth can find orphans."],
};

/** Returns a capability of a volume, as a phrase to translate. */
export const capabilityWord = (c: string) => capabilities[c]?.[0] ?? c.replaceAll(/[-_]/g, " ");
export const capabilityHint = (c: string) => capabilities[c]?.[1] ?? "";
