import { Button } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { toast } from "../../../hooks/useToasts";
import { useViewer } from "../../../hooks/useViewer";
import { t } from "../../../i18n";
import { Confirm } from "../../Confirm";
import { when } from "../../format";
import { FailureNote } from "../../Note";
import { canReadAll, isSuper } from "../nav";
import { Part } from "../Panel";
import { nodesOf } from "../usePages";
import { ResetPassword } from "./ResetPassword";
import type { OneUser } from "./user";

const LoginsQuery = graphql(`
  query LoginsOf($user: ID!) {
    loginSessions(user: $user, first: 100) { edges { node { id createdAt lastSeenAt clientAddress userAgent current } } }
  }
`);
const EndLogin = graphql(
  `mutation EndLogin($input: RevokeLoginSessionInput!) { revokeLoginSession(input: $input) { id } }`,
);
const KeypairsQuery = graphql(`
  query KeypairsOf($user: ID!) {
    keypairs(user: $user, first: 100) { edges { node { id accessKey name active isDefault createdAt lastUsedAt } } }
  }
`);
const UpdateKeypair = graphql(
  `mutation SwitchKeypair($input: UpdateKeypairInput!) { updateKeypair(input: $input) { keypair { id active } } }`,
);
const ResetTotp = graphql(
  `mutation ResetTotpOf($input: ResetTotpInput!) { resetTotp(input: $input) { user { id account { totpEnabledAt } } } }`,
);

interface Props {
  user: OneUser;
  editable: boolean;
  onChanged: () => void;
}

/** Shows the credentials of a user, with actions that reset or revoke them. */
export function UserAccess({ user, editable, onChanged }: Props) {
  const viewer = useViewer();
  const self = user.id === viewer.user.id;
  return (
    <div className="stack side">
      <Secrets user={user} editable={editable && !self} onChanged={onChanged} />
      <Logins user={user.id} mayEnd={editable} />
      {canReadAll(viewer) ? <Keypairs user={user.id} mayChange={isSuper(viewer)} /> : null}
    </div>
  );
}

function Secrets({ user, editable, onChanged }: Props) {
  const [confirming, setConfirming] = useState<"password" | "totp" | null>(null);
  const totp = useAction(ResetTotp);
  const on = user.account?.totpEnabledAt ?? null;
  return (
    <Part title={t("Password and two-step login")}>
      <dl className="facts">
        <dt>{t("Password changed")}</dt>
        <dd className="row">
          {user.account?.passwordChangedAt ? when(user.account.passwordChangedAt) : t("never")}
          {user.account?.passwordChangeRequired ? <span className="tone-wait">{t("change required")}</span> : null}
          {editable ? (
            <Button variant="default" size="compact-xs" onClick={() => setConfirming("password")}>
              {t("Reset password")}
            </Button>
          ) : null}
        </dd>
        <dt>{t("Two-step login")}</dt>
        <dd className="row">
          {on ? t("on since {{at}}", { at: when(on) }) : t("off")}
          {editable && on ? (
            <Button variant="default" size="compact-xs" onClick={() => setConfirming("totp")}>
              {t("Reset two-step login")}
            </Button>
          ) : null}
        </dd>
      </dl>
      {confirming === "password" ? (
        <ResetPassword
          user={user}
          onClose={() => {
            setConfirming(null);
            onChanged();
          }}
        />
      ) : null}
      <Confirm
        opened={confirming === "totp"}
        title={t("Reset the two-step login of {{name}}?", { name: user.email })}
        action={t("Reset")}
        busy={totp.busy}
        failure={totp.failure}
        onConfirm={async () => {
          if (await totp.run({ input: { user: user.id } })) {
            setConfirming(null);
            toast({ text: t("Two-step login was turned off.") });
          }
        }}
        onClose={() => {
          setConfirming(null);
          totp.clear();
        }}
      >
        <p>
          {t(
            "The user's authenticator app and recovery codes stop working, and the password alone is enough to log in. First make sure that the request comes from this user.",
          )}
        </p>
      </Confirm>
    </Part>
  );
}

function Logins({ user, mayEnd }: { user: string; mayEnd: boolean }) {
  const { data, failure, refetch } = useLiveQuery({ query: LoginsQuery, variables: { user } });
  const end = useAction(EndLogin, true);
  const logins = nodesOf(data?.loginSessions);
  return (
    <Part title={t("Current logins")}>
      <FailureNote failure={failure} />
      {data && logins.length === 0 ? <p className="dim">{t("Not logged in")}</p> : null}
      {logins.length > 0 ? (
        <ul className="rows">
          {logins.map((l) => (
            <li key={l.id}>
              <span style={{ minWidth: 0, flex: 1 }}>
                <span className="mono">{l.clientAddress}</span>{" "}
                <span className="dim">{t("last seen {{at}}", { at: when(l.lastSeenAt) })}</span>
                <div className="dim clip" title={l.userAgent}>
                  {l.userAgent}
                </div>
              </span>
              {l.current ? (
                <span className="dim">{t("this login")}</span>
              ) : mayEnd ? (
                <Button
                  variant="subtle"
                  color="red"
                  size="compact-xs"
                  aria-label={t("Revoke the login from {{at}}", { at: l.clientAddress })}
                  onClick={async () => {
                    if (await end.run({ input: { id: l.id } })) refetch();
                  }}
                >
                  {t("Revoke")}
                </Button>
              ) : null}
            </li>
          ))}
        </ul>
      ) : null}
    </Part>
  );
}

function Keypairs({ user, mayChange }: { user: string; mayChange: boolean }) {
  const { data, failure } = useLiveQuery({ query: KeypairsQuery, variables: { user } });
  const update = useAction(UpdateKeypair, true);
  const keypairs = nodesOf(data?.keypairs);
  return (
    <Part title={t("Keypairs")}>
      <FailureNote failure={failure} />
      {data && keypairs.length === 0 ? <p className="dim">{t("No keypairs")}</p> : null}
      {keypairs.length > 0 ? (
        <ul className="rows">
          {keypairs.map((k) => (
            <li key={k.id}>
              <span style={{ minWidth: 0, flex: 1 }}>
                <b>{k.name}</b> <span className="mono">{k.accessKey}</span>
                <div className="dim">
                  {k.active ? t("active") : t("inactive")}
                  {k.isDefault ? `, ${t("default")}` : ""},{" "}
                  {k.lastUsedAt ? t("used {{at}}", { at: when(k.lastUsedAt) }) : t("never used")}
                </div>
              </span>
              {mayChange ? (
                <Button
                  variant="default"
                  size="compact-xs"
                  aria-label={
                    k.active ? t("Deactivate {{name}}", { name: k.name }) : t("Activate {{name}}", { name: k.name })
                  }
                  onClick={() => void update.run({ input: { id: k.id, active: !k.active } })}
                >
                  {k.active ? t("Deactivate") : t("Activate")}
                </Button>
              ) : null}
            </li>
          ))}
        </ul>
      ) : null}
    </Part>
  );
}
