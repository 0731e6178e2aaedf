import { Button, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../api/graphql";
import { Copy, FailureNote } from "../components/Note";
import { when } from "../components/format";
import { useAction } from "../hooks/useAction";
import { useLiveQuery } from "../hooks/useLiveQuery";
import { t } from "../i18n";

const AccountQuery = graphql(`
  query Account {
    loginSessions { id createdAt lastSeenAt expiresAt clientAddress userAgent current }
    accessTokens(first: 50, where: { revokedAtIsNil: true }, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
      edges { node { id name prefix createdAt expiresAt lastUsedAt revokedAt } }
    }
  }
`);
const CreateToken = graphql(`
  mutation CreateToken($input: CreateAccessTokenInput!) { createAccessToken(input: $input) { secret accessToken { id name } } }
`);
const RevokeToken = graphql(`
  mutation RevokeToken($input: RevokeAccessTokenInput!) { revokeAccessToken(input: $input) { accessToken { id revokedAt } } }
`);
const RevokeLogin = graphql(`
  mutation RevokeLogin($input: RevokeLoginSessionInput!) { revokeLoginSession(input: $input) { id } }
`);

const lifetimes = [
  { value: "30", label: "30 days" },
  { value: "90", label: "90 days" },
  { value: "365", label: "1 year" },
  { value: "0", label: "No end" },
];

const endsAt = (days: number) => (days > 0 ? new Date(Date.now() + days * 86_400_000).toISOString() : null);

export function Account() {
  const { data, failure, refetch } = useLiveQuery({ query: AccountQuery });
  const create = useAction(CreateToken);
  const revokeToken = useAction(RevokeToken, true);
  const revokeLogin = useAction(RevokeLogin, true);
  const [name, setName] = useState("");
  const [days, setDays] = useState("90");
  const [secret, setSecret] = useState<string | null>(null);
  const tokens = (data?.accessTokens.edges ?? []).flatMap((e) => (e?.node && !e.node.revokedAt ? [e.node] : []));

  async function submit(event: React.FormEvent) {
    event.preventDefault();
    const done = await create.run({ input: { name, expiresAt: endsAt(Number(days)) } });
    if (!done) return;
    setSecret(done.createAccessToken.secret);
    setName("");
    refetch();
  }
  return (
    <>
      <div className="page-head">
        <h1>{t("Tokens and logins")}</h1>
      </div>
      <FailureNote failure={failure} />
      <section className="panel" aria-labelledby="tokens">
        <div className="panel-head">
          <h2 id="tokens">{t("Access tokens")}</h2>
          <span className="dim">{t("for the command line and for programs")}</span>
        </div>
        <form className="row" style={{ padding: "12px 14px", alignItems: "flex-end" }} onSubmit={submit}>
          <TextInput label={t("Name")} value={name} required onChange={(e) => setName(e.currentTarget.value)} />
          <Select label={t("Ends after")} w={120} value={days} data={lifetimes.map((l) => ({ ...l, label: t(l.label) }))} onChange={(d) => d && setDays(d)} />
          <Button type="submit" variant="light" loading={create.busy} disabled={!name.trim()}>
            {t("Create")}
          </Button>
        </form>
        {create.failure ? <div style={{ padding: "0 14px 12px" }}><FailureNote failure={create.failure} /></div> : null}
        {secret ? (
          <div className="notice" role="status">
            {t("Copy it now; it is not shown again.")} <code>{secret}</code> <Copy value={secret} label={t("Copy the token")} />
          </div>
        ) : null}
        <ul className="rows">
          {tokens.map((k) => (
            <li key={k.id}>
              <b>{k.name}</b> <code className="dim">{k.prefix}…</code>
              <span className="push dim nowrap">
                {k.lastUsedAt ? t("used {{at}}", { at: when(k.lastUsedAt) }) : t("never used")} · {k.expiresAt ? t("ends {{at}}", { at: when(k.expiresAt) }) : t("no end")}
              </span>
              <Button variant="subtle" color="red" size="compact-xs" aria-label={t("Revoke {{name}}", { name: k.name })}
                onClick={async () => { if (await revokeToken.run({ input: { id: k.id } })) refetch(); }}>
                {t("Revoke")}
              </Button>
            </li>
          ))}
        </ul>
      </section>
      <section className="panel" aria-labelledby="logins">
        <div className="panel-head">
          <h2 id="logins">{t("Logins")}</h2>
        </div>
        <ul className="rows">
          {(data?.loginSessions ?? []).map((l) => (
            <li key={l.id}>
              <span className="clip" style={{ flex: 1 }}>{l.userAgent || t("unknown browser")}</span>
              <span className="dim nowrap">
                {l.clientAddress} · {t("seen {{at}}", { at: when(l.lastSeenAt) })}
              </span>
              {l.current ? <b>{t("this one")}</b> : (
                <Button variant="subtle" color="red" size="compact-xs" aria-label={t("End the login from {{address}}", { address: l.clientAddress })}
                  onClick={async () => { if (await revokeLogin.run({ input: { id: l.id } })) refetch(); }}>
                  {t("End")}
                </Button>
              )}
            </li>
          ))}
        </ul>
      </section>
    </>
  );
}
