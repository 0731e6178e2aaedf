import { Link } from "@tanstack/react-router";
import { t } from "../../i18n";
import { when } from "../format";
import { mountState } from "./mounts";
import type { SessionDetail } from "./session";

type Mount = SessionDetail["mounts"][number];
type Session = Pick<SessionDetail, "mounts" | "history">;

const Why = ({ text }: { text: string | null }) => (text === null ? null : t("The folder {{why}}.", { why: text }));

function Name({ mount, kept }: { mount: Mount; kept: string | null }) {
  const folder = mount.vfolder;
  return (
    <>
      {folder ? (
        <Link to="/data/$id" params={{ id: folder.id }}>
          {folder.name}
        </Link>
      ) : (
        (kept ?? <span className="dim">{t("a folder that you cannot see")}</span>)
      )}
      {mount.subpath ? `/${mount.subpath}` : ""}
    </>
  );
}

/**
 * Shows the folders of a session: where each is mounted, whether it is writable, and what has happened to it since the
 * start.
 */
export function Mounts({ session }: { session: Session }) {
  if (session.mounts.length === 0) return <span className="dim">{t("none")}</span>;
  return (
    <ul className="mounts" aria-label={t("Folders")}>
      {session.mounts.map((m) => {
        const { kind, since, name, why } = mountState(m, session.history);
        return (
          <li key={m.id}>
            <Name mount={m} kept={name} /> → <code className={kind === "taken" ? "struck" : undefined}>{m.target}</code>{" "}
            {kind === "taken" ? (
              <>
                <span className="bad">{t("unmounted ({{when}})", { when: when(since!) })}</span>
                <div className="dim">
                  <Why text={why} />
                </div>
              </>
            ) : (
              <span className="dim">
                {kind === "read_only" ? t("read-only") : t("read and write")}
                {since ? ` ${t("since {{when}}", { when: when(since) })}` : ""}
              </span>
            )}
          </li>
        );
      })}
    </ul>
  );
}

/** Warns above all tabs of a running session that folders were removed from it or became read-only. */
export function MountsNote({ session }: { session: Session }) {
  const states = session.mounts.map((m) => ({ mount: m, ...mountState(m, session.history) }));
  const taken = states.filter((s) => s.kind === "taken");
  const limited = states.filter((s) => s.kind === "read_only" && s.since !== null);
  if (taken.length + limited.length === 0) return null;
  return (
    <section className="panel pad stack small warned" role="status" aria-label={t("Changed folders")}>
      {taken.map(({ mount, since, name, why }) => (
        <div key={mount.id}>
          <b className="bad">
            <Name mount={mount} kept={name} />{" "}
            {t("was unmounted from this session ({{when}}).", { when: when(since!) })}
          </b>{" "}
          <Why text={why} />{" "}
          {t("{{target}} is empty now and stays empty in this session. Programs that had it open were stopped.", {
            target: mount.target,
          })}
        </div>
      ))}
      {limited.map(({ mount, since, name }) => (
        <div key={mount.id}>
          <b className="tone-wait">
            <Name mount={mount} kept={name} /> {t("has been read-only since {{when}}.", { when: when(since!) })}
          </b>{" "}
          {t(
            "The owner of the session can read its files, but not change them. Writes to {{target}} fail until the owner can write again.",
            { target: mount.target },
          )}
        </div>
      ))}
    </section>
  );
}
