import { Button } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { CheckerDialog } from "../../components/admin/idle/CheckerDialog";
import { bindingText, CheckerPanel } from "../../components/admin/idle/CheckerPanel";
import { type Checker, CheckerFields, kindOf, rulePhrase } from "../../components/admin/idle/checker";
import { hasPermission, isSuper } from "../../components/admin/nav";
import { type Column, PagedTable, RowButton } from "../../components/admin/Table";
import "../../components/admin/rules/rules.css";
import { usePages } from "../../components/admin/usePages";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";

const CheckersQuery = graphql(
  `
  query IdleCheckers($first: Int, $after: Cursor) {
    idleCheckers(first: $first, after: $after, orderBy: [{ field: NAME, direction: ASC }]) {
      totalCount pageInfo { hasNextPage endCursor } edges { node { ...CheckerFields } }
    }
  }
`,
  [CheckerFields],
);

/** Lists the idle checkers. */
export function Idle() {
  const viewer = useViewer();
  const editable = isSuper(viewer) || hasPermission(viewer, "UPDATE", "RESOURCE_GROUP");
  const { open } = useSearch({ from: "/frame/admin/idle" });
  const navigate = useNavigate({ from: "/admin/idle" });
  const [edited, setEdited] = useState<Checker | "new" | null>(null);
  const pages = usePages({ query: CheckersQuery, variables: {}, pick: (data) => data.idleCheckers });
  const show = (id: string | undefined) => void navigate({ search: { open: id }, replace: true });
  const shown = pages.rows.find((c) => c.id === open);
  const columns: Column<Checker>[] = [
    { head: t("Checker"), cell: (c) => <RowButton onOpen={() => show(c.id)}>{c.name}</RowButton> },
    {
      head: t("Criterion"),
      cell: (c) => (
        <>
          {t(kindOf(c.kind).label)} <span className="dim">{t(...rulePhrase(c))}</span>
        </>
      ),
    },
    {
      head: t("Bound to"),
      cell: (c) =>
        c.bindings.length === 0 ? (
          <span className="dim">{t("not bound")}</span>
        ) : (
          c.bindings.map(bindingText).join(", ")
        ),
    },
    { head: t("Enabled"), cell: (c) => (c.enabled ? t("yes") : <span className="tone-wait">{t("no")}</span>) },
    { head: t("Description"), wide: true, cell: (c) => <span className="dim">{c.description}</span> },
  ];
  return (
    <>
      <div className="page-head">
        <h1>{t("Idle checkers")}</h1>
        {editable ? (
          <Button className="push" onClick={() => setEdited("new")}>
            {t("New checker")}
          </Button>
        ) : null}
      </div>
      <PagedTable
        label={t("Idle checkers")}
        pages={pages}
        columns={columns}
        selected={open}
        empty={t("No idle checkers")}
      >
        {t("Sessions run until their owners stop them.")}
      </PagedTable>
      {shown ? (
        <CheckerPanel
          checker={shown}
          editable={editable}
          onEdit={() => setEdited(shown)}
          onClose={() => show(undefined)}
          onDone={pages.reload}
        />
      ) : null}
      {edited ? (
        <CheckerDialog
          checker={edited === "new" ? null : edited}
          onClose={() => setEdited(null)}
          onDone={pages.reload}
        />
      ) : null}
    </>
  );
}
