import { Button, TextInput, Textarea } from "@mantine/core";
import { useEffect, useState } from "react";
import { useQuery } from "urql";
import { byField } from "../../api/errors";
import { type ResultOf, graphql } from "../../api/graphql";
import { FailureNote } from "../../components/Note";
import { when } from "../../components/format";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";

const ProfileQuery = graphql(`
  query Profile {
    viewer {
      user {
        id email username fullName role createdAt lastLoginAt
        domain { id name }
        account { allowedAddresses }
        memberships { id admin project { id name } }
        roleGrants { id scope scopeId role { id name description } }
      }
    }
  }
`);
const ScopeNames = graphql(`
  query ScopeNames($ids: [ID!]!) {
    nodes(ids: $ids) {
      __typename
      ... on Domain { id name } ... on Project { id name } ... on Session { id name } ... on Vfolder { id name }
      ... on ResourceGroup { id name } ... on User { id email }
    }
  }
`);
const UpdateProfile = graphql(`
  mutation UpdateProfile($input: UpdateProfileInput!) {
    updateProfile(input: $input) { user { id fullName account { allowedAddresses } } }
  }
`);

type User = ResultOf<typeof ProfileQuery>["viewer"]["user"];

const roles: Record<string, string> = {
  user: "User",
  admin: "Admin of the domain",
  superadmin: "Superadmin: everything",
  monitor: "Monitor: sees everything, changes nothing",
};

export function Profile() {
  const { data, failure } = useLiveQuery({ query: ProfileQuery });
  const user = data?.viewer.user;
  return (
    <>
      <div className="page-head">
        <h1>{t("Profile")}</h1>
      </div>
      <FailureNote failure={failure} />
      {user ? <Edit key={user.id} user={user} /> : null}
      {user ? <Place user={user} /> : null}
    </>
  );
}

function Edit({ user }: { user: User }) {
  const before = { fullName: user.fullName, networks: (user.account?.allowedAddresses ?? []).join("\n") };
  const [fullName, setFullName] = useState(before.fullName);
  const [networks, setNetworks] = useState(before.networks);
  useEffect(() => {
    setFullName(before.fullName);
    setNetworks(before.networks);
  }, [before.fullName, before.networks]);
  const { run, busy, failure } = useAction(UpdateProfile);
  const { field, rest } = byField(failure, ["fullName", "allowedAddresses"]);
  const same = fullName === before.fullName && networks === before.networks;

  async function submit(event: React.FormEvent) {
    event.preventDefault();
    const list = networks.split(/[\s,]+/).filter(Boolean);
    const done = await run({ input: { fullName: fullName.trim(), ...(networks === before.networks ? {} : { allowedAddresses: list }) } });
    if (done) toast({ text: t("Saved.") });
  }
  return (
    <section className="panel pad" aria-label={t("About you")}>
      <form className="stack narrow" onSubmit={submit}>
        <TextInput label={t("E-mail")} description={t("You log in with it. Only an admin can change it.")} value={user.email} readOnly variant="filled" />
        <TextInput label={t("Full name")} autoComplete="name" value={fullName} error={field.fullName} onChange={(e) => setFullName(e.currentTarget.value)} />
        <Textarea label={t("Networks you may come from")} description={t("One a line, such as 192.0.2.0/24 or 2001:db8::/32. Empty: from everywhere.")} autosize minRows={2}
          spellCheck={false} value={networks} error={field.allowedAddresses} onChange={(e) => setNetworks(e.currentTarget.value)} />
        <FailureNote failure={rest} />
        <div>
          <Button type="submit" loading={busy} disabled={same}>
            {t("Save")}
          </Button>
        </div>
      </form>
    </section>
  );
}

/** Where one belongs and what one may do there; admins change it. */
function Place({ user }: { user: User }) {
  const scopes = [...new Set(user.roleGrants.flatMap((g) => (g.scopeId ? [g.scopeId] : [])))].slice(0, 100);
  const [{ data }] = useQuery({ query: ScopeNames, variables: { ids: scopes }, pause: scopes.length === 0 });
  const names = new Map((data?.nodes ?? []).flatMap((n) => (n && "id" in n ? [[n.id, "name" in n ? n.name : n.email] as const] : [])));
  const where = (g: User["roleGrants"][number]) => {
    const name = (g.scopeId && names.get(g.scopeId)) || g.scopeId || "";
    if (g.scope === "system") return t("everywhere");
    if (g.scope === "domain") return t("in the domain {{name}}", { name });
    return g.scope === "project" ? t("in the project {{name}}", { name }) : t("on {{name}}", { name });
  };
  return (
    <section className="panel" aria-labelledby="place">
      <div className="panel-head">
        <h2 id="place">{t("Where you belong")}</h2>
      </div>
      <dl className="facts body">
        <dt>{t("Role")}</dt>
        <dd>{t(roles[user.role] ?? user.role)}</dd>
        <dt>{t("Domain")}</dt>
        <dd>{user.domain.name}</dd>
        <dt>{t("Projects")}</dt>
        <dd>
          {user.memberships.length === 0 ? <span className="dim">{t("none")}</span> : null}
          <span className="row tight">
            {user.memberships.map((m) => (
              <span key={m.id} className="tag">
                {m.project.name}
                {m.admin ? ` · ${t("admin")}` : ""}
              </span>
            ))}
          </span>
        </dd>
        <dt>{t("Roles granted")}</dt>
        <dd>
          {user.roleGrants.length === 0 ? <span className="dim">{t("none")}</span> : null}
          {user.roleGrants.map((g) => (
            <div key={g.id}>
              <b>{g.role.name}</b> {where(g)}
              {g.role.description ? <span className="dim"> – {g.role.description}</span> : null}
            </div>
          ))}
        </dd>
        <dt>{t("Username")}</dt>
        <dd>{user.username}</dd>
        <dt>{t("Account since")}</dt>
        <dd>{when(user.createdAt)}</dd>
      </dl>
    </section>
  );
}
