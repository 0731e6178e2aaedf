/** A folder mounted in a session. */
export interface Mount {
  target: string;
  readOnly: boolean;
  revokedAt: string | null;
}

interface MountEvent {
  at: string;
  code: string;
  message: string;
}

export interface MountState {
  kind: "writable" | "read_only" | "taken";
  /** When the state began; null if it has not changed since the start of the session. */
  since: string | null;
  /** The former name of the folder, if the viewer can no longer see it. */
  name: string | null;
  /** Why the folder was removed from the session, such as "is in the trash". */
  why: string | null;
}

const codes = new Set(["folder_read_only", "folder_writable", "folder_revoked", "folder_returned"]);

/** Returns the state of a mount, and its beginning according to the events of the session. */
export function mountState(mount: Mount, history: readonly MountEvent[]): MountState {
  const event = history
    .filter(
      (e) =>
        codes.has(e.code) && (e.message.includes(`: ${mount.target} is `) || e.message.endsWith(` ${mount.target}`)),
    )
    .reduce<MountEvent | null>(
      (last, e) => (last === null || Date.parse(e.at) >= Date.parse(last.at) ? e : last),
      null,
    );
  const name = event ? (/^folder (\S+) is /.exec(event.message)?.[1] ?? null) : null;
  if (mount.revokedAt !== null) {
    const why = event?.code === "folder_revoked" ? (/^folder \S+ (.*): /.exec(event.message)?.[1] ?? null) : null;
    return { kind: "taken", since: mount.revokedAt, name, why };
  }
  const kind = mount.readOnly ? "read_only" : "writable";
  const since = event && (event.code === "folder_read_only") === mount.readOnly ? event.at : null;
  return { kind, since, name, why: null };
}
