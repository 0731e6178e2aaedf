import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { NewToken } from "../../components/account/NewToken";
import { Secret } from "../../components/account/Secret";
import { usePages } from "../../components/admin/usePages";
import { Confirm } from "../../components/Confirm";
import { when } from "../../components/format";
import { Cli, Empty, FailureNote } from "../../components/Note";
import { useAction } from "../../hooks/useAction";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { word } from "../../words";

const TokensQuery = graphql(`
  query Tokens($first: Int!, $after: Cursor) {
    accessTokens(first: $first, after: $after, where: { revokedAtIsNil: true }, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
      totalCount
      pageInfo { hasNextPage endCursor }
      edges { node { id name prefix scopes createdAt expiresAt lastUsedAt makerID status project { id name } } }
    }
  }
`);
const RevokeToken = graphql(`
  mutation RevokeToken($input: RevokeAccessTokenInput!) {
    revokeAccessToken(input: $input) { accessToken { id revokedAt } }
  }
`);

export function Tokens() {
  const list = usePages({ query: TokensQuery, variables: {}, pick: (data) => data.accessTokens });
  const revoke = useAction(RevokeToken);
  const [creating, { open, close }] = useDisclosure(false);
  const [secret, setSecret] = useState<string | null>(null);
  const [revoking, setRevoking] = useState<{ id: string; name: string } | null>(null);
  const over = (ends: string | null) => ends !== null && Date.parse(ends) < Date.now();
  return (
    <>
      <div className="page-head">
        <h1>{t("Access tokens")}</h1>
        <span className="dim">{t("for the command line and for programs")}</span>
        <Button className="push" variant="default" onClick={open}>
          {t("New token")}
        </Button>
      </div>
      <FailureNote failure={list.failure} />
      {secret ? (
        <Secret
          title={t("Your new token")}
          values={[{ label: t("Token"), value: secret }]}
          onClose={() => setSecret(null)}
        >
          <div>
            <p className="dim">{t("Use it on the command line:")}</p>
            <Cli line={`berth login ${location.origin} --token -`} />
            <p className="dim">{t("It is also the password for your folders in other programs, by SFTP or WebDAV:")}</p>
            <Cli
              line={`rclone config create berth webdav url=${location.origin}/storage/dav vendor=other user=me pass=TOKEN`}
            />
          </div>
        </Secret>
      ) : null}
      <section className="panel" aria-label={t("Valid tokens")}>
        {!list.loading && list.rows.length === 0 ? (
          <Empty title={t("No tokens")}>
            {t("A token lets a program act as you, within the scopes that you choose.")}
          </Empty>
        ) : null}
        <ul className="rows">
          {list.rows.map((k) => (
            <li key={k.id}>
              <div className="entry">
                <div className="row tight">
                  <b>{k.name}</b> <code className="dim">{k.prefix}…</code>
                  {k.scopes.map((s) => (
                    <span key={s} className="tag">
                      {word("TokenScope", s)}
                    </span>
                  ))}
                  {k.project ? (
                    <span className="tag on">{t("only {{project}}", { project: k.project.name })}</span>
                  ) : null}
                </div>
                <div className="dim">
                  {k.lastUsedAt ? t("used {{at}}", { at: when(k.lastUsedAt) }) : t("never used")} ·{" "}
                  {t("created {{at}}", { at: when(k.createdAt) })} ·{" "}
                  {k.expiresAt === null ? (
                    t("never expires")
                  ) : over(k.expiresAt) ? (
                    <span className="bad">{t("expired {{at}}", { at: when(k.expiresAt) })}</span>
                  ) : (
                    t("expires {{at}}", { at: when(k.expiresAt) })
                  )}
                  {k.makerID ? ` · ${t("expires with the credential that created it")}` : ""}
                </div>
              </div>
              <Button
                variant="subtle"
                color="red"
                size="compact-xs"
                aria-label={t("Revoke {{name}}", { name: k.name })}
                onClick={() => setRevoking(k)}
              >
                {t("Revoke")}
              </Button>
            </li>
          ))}
        </ul>
      </section>
      {creating ? (
        <NewToken
          onClose={close}
          onMade={(made) => {
            setSecret(made);
            close();
            list.reload();
          }}
        />
      ) : null}
      <Confirm
        opened={revoking !== null}
        title={t("Revoke {{name}}?", { name: revoking?.name ?? "" })}
        action={t("Revoke")}
        busy={revoke.busy}
        failure={revoke.failure}
        onClose={() => {
          revoke.clear();
          setRevoking(null);
        }}
        onConfirm={async () => {
          if (!revoking || !(await revoke.run({ input: { id: revoking.id } }))) return;
          toast({ text: t("{{name}} was revoked.", { name: revoking.name }) });
          setRevoking(null);
          list.reload();
        }}
      >
        {t(
          "Programs that use it are refused at once, and so are all credentials that were created with it. This cannot be undone.",
        )}
      </Confirm>
    </>
  );
}
