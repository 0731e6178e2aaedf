import { Button } from "@mantine/core";
import { useState } from "react";
import { graphql, type ResultOf } from "../../api/graphql";
import { FilterBox } from "../../components/admin/Filter";
import { canReadAll, hasPermission } from "../../components/admin/nav";
import { invitationStatus } from "../../components/admin/people/invitation";
import { NewInvitation } from "../../components/admin/people/NewInvitation";
import { Waiting } from "../../components/admin/people/Waiting";
import { PagedTable } from "../../components/admin/Table";
import { type Node, usePages } from "../../components/admin/usePages";
import { Confirm } from "../../components/Confirm";
import { when } from "../../components/format";
import { Status } from "../../components/Status";
import { useAction } from "../../hooks/useAction";
import { administers, useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";

const InvitationsQuery = graphql(`
  query Invitations($first: Int, $after: Cursor, $where: InvitationWhereInput) {
    invitations(first: $first, after: $after, where: $where, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
      totalCount pageInfo { hasNextPage endCursor }
      edges { node { id email createdAt expiresAt usedAt revokedAt domain { id name } project { id name } } }
    }
  }
`);
const Revoke = graphql(
  `
  mutation RevokeInvitation($input: RevokeInvitationInput!) {
    revokeInvitation(input: $input) { invitation { id revokedAt usedAt } }
  }
`,
);

type Row = Node<ResultOf<typeof InvitationsQuery>["invitations"]>;

/** Lists invitations, and users who wait for approval. */
export function Invitations() {
  const viewer = useViewer();
  const { run, busy, failure: refused, clear } = useAction(Revoke);
  const [q, setQ] = useState("");
  const pages = usePages({
    query: InvitationsQuery,
    variables: { where: q ? { emailContainsFold: q } : null },
    pick: (data) => data.invitations,
  });
  const [making, make] = useState(false);
  const [revoking, setRevoking] = useState<Row | null>(null);
  const invites = administers(viewer) || hasPermission(viewer, "CREATE", "INVITATION");
  const revokes = administers(viewer) || hasPermission(viewer, "DELETE", "INVITATION");
  return (
    <>
      <div className="page-head">
        <h1>{t("Invitations")}</h1>
        {invites ? (
          <Button className="push" onClick={() => make(true)}>
            {t("New invitation")}
          </Button>
        ) : null}
      </div>
      <Waiting />
      <section className="stack" aria-label={t("Invitations")}>
        <div className="row">
          <h2>{t("Invited")}</h2>
          <FilterBox label={t("Filter by e-mail")} value={q} onChange={setQ} />
        </div>
        <PagedTable
          label={t("Invitations")}
          pages={pages}
          empty={q ? t("No invitation matches") : t("No invitations")}
          columns={[
            { head: t("E-mail"), cell: (i) => <b>{i.email}</b> },
            { head: t("Status"), cell: (i) => <Status status={invitationStatus(i)} /> },
            ...(canReadAll(viewer) ? [{ head: t("Domain"), cell: (i: Row) => i.domain.name }] : []),
            { head: t("Project"), wide: true, cell: (i) => i.project?.name ?? "" },
            { head: t("Created"), wide: true, cell: (i) => <span className="dim nowrap">{when(i.createdAt)}</span> },
            {
              head: t("Until"),
              cell: (i) => (
                <span className="dim nowrap">
                  {i.usedAt ? t("used {{at}}", { at: when(i.usedAt) }) : when(i.expiresAt)}
                </span>
              ),
            },
            {
              head: "",
              num: true,
              cell: (i) =>
                revokes && invitationStatus(i) === "open" ? (
                  <Button
                    variant="subtle"
                    color="red"
                    size="compact-xs"
                    aria-label={t("Revoke the invitation of {{email}}", { email: i.email })}
                    onClick={() => {
                      clear();
                      setRevoking(i);
                    }}
                  >
                    {t("Revoke")}
                  </Button>
                ) : null,
            },
          ]}
        >
          {q ? null : t("An invitation lets one person sign up, if the domain allows sign-ups.")}
        </PagedTable>
      </section>
      <Confirm
        opened={revoking !== null}
        title={t("Revoke the invitation of {{email}}?", { email: revoking?.email ?? "" })}
        action={t("Revoke")}
        busy={busy}
        failure={refused}
        onClose={() => setRevoking(null)}
        onConfirm={async () => {
          if (revoking && (await run({ input: { id: revoking.id } }))) setRevoking(null);
        }}
      >
        <p>{t("Its link stops working.")}</p>
      </Confirm>
      {making ? <NewInvitation onClose={() => make(false)} onDone={pages.reload} /> : null}
    </>
  );
}
