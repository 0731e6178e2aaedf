import { graphql } from "../../api/graphql";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { t } from "../../i18n";
import { BudgetState, periodText } from "../admin/money/BudgetState";
import { BudgetParts } from "../admin/money/budget";
import { holderText } from "../admin/rules/holder";
import { FailureNote } from "../Note";

const MyBudgetsQuery = graphql(`query MyBudgets { server { currency } budgets(mine: true) { ...BudgetParts } }`, [
  BudgetParts,
]);

/** Shows the budgets that apply to the viewer's sessions; nothing without one. */
export function MyBudgets() {
  const { data, failure } = useLiveQuery({ query: MyBudgetsQuery, variables: {} });
  const list = data?.budgets ?? [];
  if (failure) return <FailureNote failure={failure} />;
  if (list.length === 0) return null;
  return (
    <section className="panel pad stack" aria-label={t("Budgets")}>
      <h2>{t("Budgets")}</h2>
      {list.map((b) => (
        <div key={b.id}>
          <b>{holderText(b)}</b> <span className="dim">{periodText(b)}</span>
          <BudgetState budget={b} currency={data?.server.currency ?? ""} />
        </div>
      ))}
    </section>
  );
}
