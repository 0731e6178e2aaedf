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
