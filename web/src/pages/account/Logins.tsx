import { Button } from "@mantine/core";
import { useEffect, useState } from "react";
import { graphql, type ResultOf } from "../../api/graphql";
import { agentName } from "../../components/account/agent";
import { LoginHistory } from "../../components/account/LoginHistory";
import { type Node, nodesOf } from "../../components/admin/usePages";
import { Confirm } from "../../components/Confirm";
import { when } from "../../components/format";
import { FailureNote } from "../../components/Note";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";

const LoginsQuery = graphql(
  `query Logins {
    loginSessions(first: 100) {
      edges { node { id createdAt lastSeenAt expiresAt clientAddress userAgent current } }
    }
  }`,
);
const RevokeLogin = graphql(
  `mutation RevokeLogin($input: RevokeLoginSessionInput!) { revokeLoginSession(input: $input) { id } }`,
);

/** Milliseconds between two refreshes of the list while the page is visible. */
const refreshInterval = 10_000;

type Login = Node<ResultOf<typeof LoginsQuery>["loginSessions"]>;

export function Logins() {
  const { data, failure, refetch } = useLiveQuery({ query: LoginsQuery, requestPolicy: "network-only" });
  const revoke = useAction(RevokeLogin);
  const [ending, setEnding] = useState<Login[]>([]);
  const [busy, setBusy] = useState(false);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => document.visibilityState === "visible" && refetch(), refreshInterval);
    return () => clearInterval(timer);
  }, []);
  const logins = nodesOf(data?.loginSessions).sort(
    (a, b) => Number(b.current) - Number(a.current) || b.lastSeenAt.localeCompare(a.lastSeenAt),
  );
  const others = logins.filter((l) => !l.current);

  async function end() {
    setBusy(true);
    let ended = 0;
    for (const login of ending) {
      if (!(await revoke.run({ input: { id: login.id } }))) break;
      ended++;
    }
    setBusy(false);
    refetch();
    setTurn(turn + 1);
    if (ended < ending.length) return;
    toast({ text: t("{{count}} logins were revoked.", { count: ended }) });
    setEnding([]);
  }
  return (
    <>
      <div className="page-head">
        <h1>{t("Logins")}</h1>
        <span className="dim">{t("browsers in which you are logged in")}</span>
        {others.length > 0 ? (
          <Button className="push" variant="default" onClick={() => setEnding(others)}>
            {t("Revoke all others")}
          </Button>
        ) : null}
      </div>
      <FailureNote failure={failure} />
      <section className="panel" aria-label={t("Current logins")}>
        <ul className="rows">
          {logins.map((l) => (
            <li key={l.id}>
              <div className="entry">
                <div title={l.userAgent}>
                  <b>{agentName(l.userAgent) || t("unknown browser")}</b> <span className="dim">{l.clientAddress}</span>
                </div>
                <div className="dim">
                  {t("last seen {{at}}", { at: when(l.lastSeenAt) })} · {t("since {{at}}", { at: when(l.createdAt) })} ·{" "}
                  {t("expires {{at}}", { at: when(l.expiresAt) })}
                </div>
              </div>
              {l.current ? (
                <span className="tag on">{t("this login")}</span>
              ) : (
                <Button
                  variant="subtle"
                  color="red"
                  size="compact-xs"
                  aria-label={t("Revoke the login from {{address}}, last seen {{at}}", {
                    address: l.clientAddress,
                    at: when(l.lastSeenAt),
                  })}
                  onClick={() => setEnding([l])}
                >
                  {t("Revoke")}
                </Button>
              )}
            </li>
          ))}
        </ul>
      </section>
      <LoginHistory turn={turn} />
      <Confirm
        opened={ending.length > 0}
        title={t("Revoke {{count}} logins?", { count: ending.length })}
        action={t("Revoke")}
        busy={busy}
        failure={revoke.failure}
        onConfirm={() => void end()}
        onClose={() => {
          revoke.clear();
          setEnding([]);
        }}
      >
        {t(
          "Anyone who uses them must log in again, and their terminals close at once. Running sessions are not affected.",
        )}
      </Confirm>
    </>
  );
}
