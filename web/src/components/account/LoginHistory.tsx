import { SegmentedControl } from "@mantine/core";
import { useEffect, useState } from "react";
import { graphql, type VariablesOf } from "../../api/graphql";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { PagedTable } from "../admin/Table";
import { usePages } from "../admin/usePages";
import { when } from "../format";
import { agentName } from "./agent";
import { Outcome } from "./Outcome";
import { loginResults, refusals } from "./trail";

const LoginHistoryQuery = graphql(`
  query LoginHistory($first: Int!, $after: Cursor, $where: LoginAttemptWhereInput) {
    loginAttempts(first: $first, after: $after, where: $where, orderBy: [{ field: AT, direction: DESC }]) {
      totalCount
      pageInfo { hasNextPage endCursor }
      edges { node { id at method result clientAddress userAgent } }
    }
  }
`);

type Where = NonNullable<VariablesOf<typeof LoginHistoryQuery>["where"]>;

/** Logins to the viewer's account, refused attempts, and how logins ended. */
export function LoginHistory({ turn }: { turn: number }) {
  const { user } = useViewer();
  const [show, setShow] = useState("all");
  const where: Where = { userID: user.id, ...(show === "refused" ? { resultIn: [...refusals] } : {}) };
  const pages = usePages({ query: LoginHistoryQuery, variables: { where }, pick: (data) => data.loginAttempts });
  useEffect(() => {
    if (turn > 0) pages.reload();
  }, [turn]);
  return (
    <>
      <div className="row">
        <h2>{t("Login history")}</h2>
        <span className="push" />
        <SegmentedControl
          aria-label={t("Filter the login history")}
          value={show}
          onChange={setShow}
          data={[
            { value: "all", label: t("All") },
            { value: "refused", label: t("Refused") },
          ]}
        />
      </div>
      <PagedTable
        label={t("Login history")}
        pages={pages}
        empty={show === "refused" ? t("No refused logins") : t("No entries yet")}
        columns={[
          { head: t("Time"), cell: (a) => <span className="nowrap">{when(a.at)}</span> },
          {
            head: t("Event"),
            cell: (a) => {
              const { text, tone } = loginResults[a.result];
              return <Outcome tone={tone}>{text}</Outcome>;
            },
          },
          { head: t("Address"), cell: (a) => a.clientAddress },
          {
            head: t("Client"),
            cell: (a) => (
              <span className="dim" title={a.userAgent}>
                {agentName(a.userAgent)}
                {a.method === "OIDC" ? ` · ${t("identity provider")}` : ""}
              </span>
            ),
          },
        ]}
      />
    </>
  );
}
