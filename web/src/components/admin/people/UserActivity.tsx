import { Link } from "@tanstack/react-router";
import { graphql } from "../../../api/graphql";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { t } from "../../../i18n";
import { FailureNote } from "../../Note";
import { when } from "../../format";
import { Part } from "../Panel";
import { Table } from "../Table";
import { nodesOf } from "../usePages";
import type { OneUser } from "./UserPanel";

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

/** The newest of what a user did, what was done to him, and how he came in. */
export function UserActivity({ user }: { user: OneUser }) {
  const { data, failure } = useLiveQuery({ query: ActivityQuery, variables: { user: user.id, email: user.email } });
  const entries = nodesOf(data?.auditEntries);
  const attempts = nodesOf(data?.loginAttempts);
  return (
    <div className="stack side">
      <FailureNote failure={failure} />
      <Part title={t("What happened last")} aside={<Link to="/admin/audit" search={{ actor: user.id }}>{t("All that he did")}</Link>}>
        {data && entries.length === 0 ? <p className="dim">{t("Nothing yet.")}</p> : null}
        {entries.length > 0 ? (
          <Table label={t("What happened last")} rows={entries}
            columns={[
              { head: t("At"), cell: (e) => <span className="nowrap">{when(e.at)}</span> },
              { head: t("What"), cell: (e) => <span className="mono">{e.action}</span> },
              { head: t("By"), wide: true, cell: (e) => (e.actorEmail === user.email ? t("himself") : e.actorEmail || t("the platform")) },
              { head: t("Result"), cell: (e) => (e.result === "OK" ? t("done") : <span className="bad" title={e.message}>{e.result}</span>) },
            ]} />
        ) : null}
      </Part>
      <Part title={t("Logins and attempts")}>
        {data && attempts.length === 0 ? <p className="dim">{t("Nothing yet.")}</p> : null}
        {attempts.length > 0 ? (
          <Table label={t("Logins and attempts")} rows={attempts}
            columns={[
              { head: t("At"), cell: (a) => <span className="nowrap">{when(a.at)}</span> },
              { head: t("Result"), cell: (a) => t(a.result.replaceAll("_", " ")) },
              { head: t("From"), cell: (a) => <span className="mono" title={a.userAgent}>{a.clientAddress}</span> },
              { head: t("How"), wide: true, cell: (a) => (a.method === "oidc" ? t("login provider") : t("password")) },
            ]} />
        ) : null}
      </Part>
    </div>
  );
}
