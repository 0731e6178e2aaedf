import { Button } from "@mantine/core";
import { useState } from "react";
import { graphql, type ResultOf } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { toast } from "../../../hooks/useToasts";
import { t } from "../../../i18n";
import { Confirm } from "../../Confirm";
import { when } from "../../format";
import { type Column, PagedTable } from "../Table";
import { usePages } from "../usePages";
import { can } from "./rights";
import { UpdateUser } from "./userdraft";

const WaitingRow = graphql(
  `fragment WaitingRow on User { id email username fullName status createdAt permissions domain { id name } }`,
);
type Row = ResultOf<typeof WaitingRow>;
const WaitingQuery = graphql(
  `
  query WaitingUsers($first: Int, $after: Cursor) {
    users(first: $first, after: $after, where: { status: BEFORE_VERIFICATION }, orderBy: [{ field: CREATED_AT, direction: ASC }]) {
      totalCount pageInfo { hasNextPage endCursor } edges { node { ...WaitingRow } }
    }
  }
`,
  [WaitingRow],
);

/** Shows users who signed up and wait for approval. */
export function Waiting() {
  const pages = usePages({ query: WaitingQuery, variables: {}, pick: (data) => data.users });
  const { run, busy, failure, clear } = useAction(UpdateUser);
  const approve = useAction(UpdateUser, true);
  const [refused, refuse] = useState<Row | null>(null);
  async function set(user: Row, status: "ACTIVE" | "DELETED") {
    if (!(await (status === "ACTIVE" ? approve.run : run)({ input: { id: user.id, status } }))) return;
    refuse(null);
    toast({
      text:
        status === "ACTIVE"
          ? t("{{name}} can log in now.", { name: user.email })
          : t("{{name}} was rejected.", { name: user.email }),
    });
    pages.reload();
  }
  const columns: Column<Row>[] = [
    { head: t("E-mail"), cell: (u) => <b>{u.email}</b> },
    { head: t("Name"), cell: (u) => u.fullName || u.username },
    { head: t("Domain"), wide: true, cell: (u) => u.domain.name },
    { head: t("Signed up"), cell: (u) => <span className="dim nowrap">{when(u.createdAt)}</span> },
    {
      head: "",
      num: true,
      cell: (u) =>
        can(u, "UPDATE") ? (
          <span className="row keep" style={{ justifyContent: "flex-end" }}>
            <Button
              size="compact-xs"
              aria-label={t("Approve {{email}}", { email: u.email })}
              onClick={() => void set(u, "ACTIVE")}
            >
              {t("Approve")}
            </Button>
            <Button
              variant="subtle"
              color="red"
              size="compact-xs"
              aria-label={t("Reject {{email}}", { email: u.email })}
              onClick={() => {
                clear();
                refuse(u);
              }}
            >
              {t("Reject")}
            </Button>
          </span>
        ) : null,
    },
  ];
  // Users who were approved or rejected a moment ago are still in the cached list.
  const rows = pages.rows.filter((u) => u.status === "BEFORE_VERIFICATION");
  return (
    <section className="stack" aria-label={t("Pending sign-ups")}>
      <h2>{t("Pending approval")}</h2>
      <PagedTable
        label={t("Pending sign-ups")}
        pages={{ ...pages, rows }}
        columns={columns}
        empty={t("No pending sign-ups")}
      />
      <Confirm
        opened={refused !== null}
        title={t("Reject {{name}}?", { name: refused?.email ?? "" })}
        action={t("Reject")}
        busy={busy}
        failure={failure}
        onClose={() => refuse(null)}
        onConfirm={() => {
          if (refused) void set(refused, "DELETED");
        }}
      >
        <p>
          {t(
            "The user cannot log in and is hidden from lists. To find the user again, filter the list by the status Deleted.",
          )}
        </p>
      </Confirm>
    </section>
  );
}
