/** A folder in a session, as far as one tells how it came to be as it is. */
export interface Mount {
  target: string;
  readOnly: boolean;
  revokedAt: string | null;
}

interface Told {
  at: string;
  code: string;
  message: string;
}

export interface MountState {
  kind: "writable" | "read_only" | "taken";
  /** When it became so; null when it has been so from the start. */
  since: string | null;
  /** What the folder was called, where the viewer no longer sees it. */
  name: string | null;
  /** What became of the folder, as "is in the trash", of one that was taken away. */
  why: string | null;
}

const codes = new Set(["folder_read_only", "folder_writable", "folder_revoked", "folder_returned"]);

/** How a mount is, and since when, by what the session's history tells of it. */
export function mountState(mount: Mount, history: readonly Told[]): MountState {
  const told = history
    .filter(
      (e) =>
        codes.has(e.code) && (e.message.includes(`: ${mount.target} is `) || e.message.endsWith(` ${mount.target}`)),
    )
    .reduce<Told | null>((last, e) => (last === null || Date.parse(e.at) >= Date.parse(last.at) ? e : last), null);
  const name = told ? (/^folder (\S+) is /.exec(told.message)?.[1] ?? null) : null;
  if (mount.revokedAt !== null) {
    const why = told?.code === "folder_revoked" ? (/^folder \S+ (.*): /.exec(told.message)?.[1] ?? null) : null;
    return { kind: "taken", since: mount.revokedAt, name, why };
  }
  const kind = mount.readOnly ? "read_only" : "writable";
  const since = told && (told.code === "folder_read_only") === mount.readOnly ? told.at : null;
  return { kind, since, name, why: null };
}
