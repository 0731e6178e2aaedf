import { Button } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { BudgetDialog } from "../../components/admin/money/BudgetDialog";
import { BudgetState, periodText } from "../../components/admin/money/BudgetState";
import { type Budget, BudgetParts } from "../../components/admin/money/budget";
import { holderText } from "../../components/admin/rules/holder";
import { type Column, Table } from "../../components/admin/Table";
import { Confirm } from "../../components/Confirm";
import { money } from "../../components/money";
import { Empty, FailureNote } from "../../components/Note";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { administers, useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { word } from "../../words";

const BudgetsQuery = graphql(`query Budgets { server { currency } budgets { ...BudgetParts } }`, [BudgetParts]);
const DeleteBudget = graphql(
  `mutation DeleteBudget($input: DeleteBudgetInput!) { deleteBudget(input: $input) { id } }`,
);

/** Shows the budgets that the viewer can see, and what is spent. */
export function Budgets() {
  const viewer = useViewer();
  const { data, failure, refetch } = useLiveQuery({ query: BudgetsQuery, variables: {} });
  const remove = useAction(DeleteBudget);
  const [edited, setEdited] = useState<Budget | "new" | null>(null);
  const [deleting, setDeleting] = useState<Budget | null>(null);
  const rows = data?.budgets ?? [];
  const currency = data?.server.currency ?? "";
  const columns: Column<Budget>[] = [
    {
      head: t("Budget of"),
      cell: (b) => (
        <>
          <b>{holderText(b)}</b>
          <div className="dim">{periodText(b)}</div>
        </>
      ),
    },
    { head: t("State"), cell: (b) => <BudgetState budget={b} currency={currency} /> },
    { head: t("Soft limit"), num: true, wide: true, cell: (b) => (b.soft === null ? "–" : money(b.soft)) },
    { head: t("Hard limit"), num: true, wide: true, cell: (b) => (b.hard === null ? "–" : money(b.hard)) },
    { head: t("At the hard limit"), wide: true, cell: (b) => (b.hard === null ? "–" : word("BudgetAction", b.atHard)) },
    {
      head: t("Actions"),
      num: true,
      cell: (b) => (
        <span className="nowrap">
          <Button
            variant="subtle"
            size="compact-xs"
            aria-label={t("Edit the budget of {{holder}}", { holder: holderText(b) })}
            onClick={() => setEdited(b)}
          >
            {t("Edit")}
          </Button>
          <Button
            variant="subtle"
            color="red"
            size="compact-xs"
            aria-label={t("Delete the budget of {{holder}}", { holder: holderText(b) })}
            onClick={() => {
              remove.clear();
              setDeleting(b);
            }}
          >
            {t("Delete")}
          </Button>
        </span>
      ),
    },
  ];
  async function confirmed() {
    if (!deleting || !(await remove.run({ input: { id: deleting.id } }))) return;
    setDeleting(null);
    refetch();
  }
  return (
    <>
      <div className="page-head">
        <h1>{t("Budgets")}</h1>
        <span className="dim">{t("what the sessions of a user, a project or a domain can cost")}</span>
        {administers(viewer) ? (
          <Button className="push" onClick={() => setEdited("new")}>
            {t("New budget")}
          </Button>
        ) : null}
      </div>
      <FailureNote failure={failure} />
      {data && rows.length === 0 ? (
        <div className="panel">
          <Empty title={t("No budgets")}>{t("Without a budget, costs have no limit.")}</Empty>
        </div>
      ) : null}
      {rows.length > 0 ? (
        <Table label={t("Budgets")} rows={rows} columns={administers(viewer) ? columns : columns.slice(0, -1)} />
      ) : null}
      {edited ? (
        <BudgetDialog
          budget={edited === "new" ? null : edited}
          currency={currency}
          onClose={() => setEdited(null)}
          onDone={refetch}
        />
      ) : null}
      <Confirm
        opened={deleting !== null}
        title={t("Delete the budget of {{holder}}?", { holder: deleting ? holderText(deleting) : "" })}
        action={t("Delete")}
        busy={remove.busy}
        failure={remove.failure}
        onClose={() => setDeleting(null)}
        onConfirm={() => void confirmed()}
      >
        {t("Its limits no longer apply. Usage and costs stay.")}
      </Confirm>
    </>
  );
}
