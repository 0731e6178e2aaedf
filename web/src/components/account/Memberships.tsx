import { useNames } from "../../hooks/useNames";
import { t } from "../../i18n";
import { when } from "../format";
import type { Profile } from "./profile";
import { permissionPhrases, roleTexts } from "./rights";

/** The user's projects, and their permissions in each. */
export function Memberships({ user }: { user: Profile }) {
  const { account } = user;
  return (
    <section className="panel" aria-labelledby="place">
      <div className="panel-head">
        <h2 id="place">{t("Role and membership")}</h2>
      </div>
      <dl className="facts body">
        <dt>{t("Role")}</dt>
        <dd>
          <b>{t(roleTexts[user.role].name)}</b>
          <div className="dim">{t(roleTexts[user.role].what)}</div>
        </dd>
        <dt>{t("Domain")}</dt>
        <dd>{user.domain.name}</dd>
        <dt>{t("Projects")}</dt>
        <dd>
          {user.memberships.length === 0 ? <span className="dim">{t("none")}</span> : null}
          <span className="row tight">
            {user.memberships.map((m) => (
              <span key={m.id} className={`tag${m.admin ? " on" : ""}`}>
                {m.project.name}
                {m.admin ? ` · ${t("administrator: you choose its members")}` : ""}
              </span>
            ))}
          </span>
        </dd>
        <dt>{t("Additional roles")}</dt>
        <dd>
          {user.roleGrants.length === 0 ? (
            <span className="dim">{t("none")}</span>
          ) : (
            <Grants grants={user.roleGrants} />
          )}
        </dd>
        <dt>{t("Username")}</dt>
        <dd>{user.username}</dd>
        <dt>{t("User in containers")}</dt>
        <dd>{container(account)}</dd>
        <dt>{t("Account created")}</dt>
        <dd>{when(user.createdAt)}</dd>
        <dt>{t("Last login")}</dt>
        <dd>{user.lastLoginAt ? when(user.lastLoginAt) : t("never")}</dd>
      </dl>
    </section>
  );
}

function container(account: Profile["account"]): string {
  if (account?.containerUid == null) return t("the default user of the image");
  const gid = account.containerGid ?? account.containerUid;
  const groups =
    account.containerGids.length > 0 ? `, ${t("groups {{list}}", { list: account.containerGids.join(" ") })}` : "";
  return `uid ${account.containerUid}, gid ${gid}${groups}`;
}

function Grants({ grants }: { grants: Profile["roleGrants"] }) {
  const names = useNames(grants.map((g) => g.scopeId));
  const where = (g: Profile["roleGrants"][number]) => {
    const name = (g.scopeId && names[g.scopeId]) || g.scopeId || "";
    if (g.scope === "SYSTEM") return t("everywhere");
    if (g.scope === "DOMAIN") return t("in domain {{name}}", { name });
    return g.scope === "PROJECT" ? t("in project {{name}}", { name }) : t("on {{name}}", { name });
  };
  return (
    <ul className="grants">
      {grants.map((g) => (
        <li key={g.id}>
          <b>{g.role.name}</b> {where(g)}
          {g.role.description ? <span className="dim"> – {g.role.description}</span> : null}
          <ul className="dim">
            {permissionPhrases(g.role.allows).map(({ on, editable }) => (
              <li key={on}>
                {t(on)}: {editable.map((m) => t(m)).join(", ")}
              </li>
            ))}
          </ul>
        </li>
      ))}
    </ul>
  );
}
