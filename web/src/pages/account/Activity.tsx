import { SegmentedControl } from "@mantine/core";
import { useState } from "react";
import { graphql, type VariablesOf } from "../../api/graphql";
import { agentName } from "../../components/account/agent";
import { Outcome } from "../../components/account/Outcome";
import { actionName } from "../../components/account/trail";
import { PagedTable } from "../../components/admin/Table";
import { usePages } from "../../components/admin/usePages";
import { when } from "../../components/format";
import { useNames } from "../../hooks/useNames";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { outcomeWord } from "../../words";

const ActivityQuery = graphql(`
  query Activity($first: Int!, $after: Cursor, $where: AuditEntryWhereInput) {
    activity(first: $first, after: $after, where: $where, orderBy: [{ field: AT, direction: DESC }]) {
      totalCount
      pageInfo { hasNextPage endCursor }
      edges {
        node {
          id at actorId actorEmail actedAsId action entity entityId credentialId clientAddress result message requestId
        }
      }
    }
  }
`);

type Where = NonNullable<VariablesOf<typeof ActivityQuery>["where"]>;

/** Lists the viewer's actions, and actions of others on the viewer's account or on their behalf. */
export function Activity() {
  const { user } = useViewer();
  const [show, setShow] = useState("all");
  const where: Where = show === "failed" ? { resultNEQ: "OK" } : show === "others" ? { not: { actorID: user.id } } : {};
  const pages = usePages({ query: ActivityQuery, variables: { where }, pick: (data) => data.activity });
  const names = useNames(pages.rows.flatMap((e) => [e.entityId, e.credentialId]));
  return (
    <>
      <div className="page-head">
        <h1>{t("Activity")}</h1>
        <span className="dim">{t("your actions, and actions of others as you or on your account")}</span>
        <SegmentedControl
          className="push"
          aria-label={t("Filter the activity")}
          value={show}
          onChange={setShow}
          data={[
            { value: "all", label: t("All") },
            { value: "failed", label: t("Failed") },
            { value: "others", label: t("By others") },
          ]}
        />
      </div>
      <PagedTable
        label={t("Activity")}
        pages={pages}
        empty={
          show === "failed" ? t("No failures") : show === "others" ? t("No activity by others") : t("No entries yet")
        }
        columns={[
          { head: t("Time"), cell: (e) => <span className="nowrap">{when(e.at)}</span> },
          {
            head: t("Action"),
            cell: (e) => (
              <>
                {t(actionName(e.action))} {e.entityId && e.entityId !== user.id ? <b>{names[e.entityId]}</b> : null}
                {e.actorId === user.id ? null : (
                  <div className="dim">
                    {e.actorEmail ? t("by {{name}}", { name: e.actorEmail }) : t("by the platform")}
                  </div>
                )}
              </>
            ),
          },
          {
            head: t("Result"),
            cell: (e) => (
              <>
                <Outcome tone={e.result === "OK" ? "ok" : "bad"}>{outcomeWord(e.result)}</Outcome>
                {e.message ? <div className="dim">{e.message}</div> : null}
              </>
            ),
          },
          {
            head: t("Address"),
            cell: (e) => (
              <>
                {e.clientAddress}
                <div className="dim nowrap">{(e.credentialId && agentName(names[e.credentialId] ?? "")) || null}</div>
              </>
            ),
          },
        ]}
      />
    </>
  );
}
