import { Link } from "@tanstack/react-router";
import { graphql } from "../../../api/graphql";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { t } from "../../../i18n";
import { outcomeWord, word } from "../../../words";
import { when } from "../../format";
import { FailureNote } from "../../Note";
import { Part } from "../Panel";
import { Table } from "../Table";
import { nodesOf } from "../usePages";
import type { OneUser } from "./user";

const ActivityQuery = graphql(`
  query ActivityOf($user: ID!, $email: String!) {
    auditEntries(first: 20, where: { or: [{ actorID: $user }, { actedAsID: $user }, { entityID: $user }] }, orderBy: [{ field: AT, direction: DESC }]) {
      edges { node { id at actorEmail action entity result message clientAddress } }
    }
    loginAttempts(first: 10, where: { or: [{ userID: $user }, { email: $email }] }, orderBy: [{ field: AT, direction: DESC }]) {
      edges { node { id at method result clientAddress userAgent } }
    }
  }
`);

/** Shows the latest actions of a user, actions on their account, and their logins. */
export function UserActivity({ user }: { user: OneUser }) {
  const { data, failure } = useLiveQuery({ query: ActivityQuery, variables: { user: user.id, email: user.email } });
  const entries = nodesOf(data?.auditEntries);
  const attempts = nodesOf(data?.loginAttempts);
  return (
    <div className="stack side">
      <FailureNote failure={failure} />
      <Part
        title={t("Recent activity")}
        aside={
          <Link to="/admin/audit" search={{ actor: user.id }}>
            {t("Show all in the audit log")}
          </Link>
        }
      >
        {data && entries.length === 0 ? <p className="dim">{t("No activity yet")}</p> : null}
        {entries.length > 0 ? (
          <Table
            label={t("Recent activity")}
            rows={entries}
            columns={[
              { head: t("Time"), cell: (e) => <span className="nowrap">{when(e.at)}</span> },
              { head: t("Action"), cell: (e) => <span className="mono">{e.action}</span> },
              {
                head: t("Actor"),
                wide: true,
                cell: (e) => (e.actorEmail === user.email ? t("the user") : e.actorEmail || t("the platform")),
              },
              {
                head: t("Result"),
                cell: (e) =>
                  e.result === "OK" ? (
                    t("done")
                  ) : (
                    <span className="bad" title={e.message}>
                      {outcomeWord(e.result)}
                    </span>
                  ),
              },
            ]}
          />
        ) : null}
      </Part>
      <Part title={t("Logins and failed attempts")}>
        {data && attempts.length === 0 ? <p className="dim">{t("No logins yet")}</p> : null}
        {attempts.length > 0 ? (
          <Table
            label={t("Logins and failed attempts")}
            rows={attempts}
            columns={[
              { head: t("Time"), cell: (a) => <span className="nowrap">{when(a.at)}</span> },
              { head: t("Result"), cell: (a) => word("LoginResult", a.result) },
              {
                head: t("Address"),
                cell: (a) => (
                  <span className="mono" title={a.userAgent}>
                    {a.clientAddress}
                  </span>
                ),
              },
              {
                head: t("Method"),
                wide: true,
                cell: (a) => (a.method === "OIDC" ? t("identity provider") : t("password")),
              },
            ]}
          />
        ) : null}
      </Part>
    </div>
  );
}
