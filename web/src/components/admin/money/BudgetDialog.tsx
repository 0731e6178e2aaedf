import { Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql, type VariablesOf } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { useViewer } from "../../../hooks/useViewer";
import { t } from "../../../i18n";
import { word } from "../../../words";
import { FormDialog } from "../Form";
import { isSuper } from "../nav";
import { type Holder, HolderPick } from "../rules/HolderPick";
import { holderText } from "../rules/holder";
import type { Budget } from "./budget";

const SetBudget = graphql(`mutation SetBudget($input: SetBudgetInput!) { setBudget(input: $input) { budget { id } } }`);
type Input = VariablesOf<typeof SetBudget>["input"];
type Period = NonNullable<Input["period"]>;
type Action = NonNullable<Input["atHard"]>;

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const periods = ["MONTH", "TOTAL"] as const satisfies Period[];
const actions = ["KEEP", "TERMINATE"] as const satisfies Action[];

interface Props {
  /** Null for a new one. */
  budget: Budget | null;
  currency: string;
  onClose: () => void;
  onDone: () => void;
}

/** Creates a budget or changes the limits of one. */
export function BudgetDialog({ budget, currency, onClose, onDone }: Props) {
  const viewer = useViewer();
  const [holder, setHolder] = useState<Holder>({ kind: "project", id: null });
  const [period, setPeriod] = useState<Period>(budget?.period ?? "MONTH");
  const [ends, setEnds] = useState("");
  const [soft, setSoft] = useState(budget?.soft ?? "");
  const [hard, setHard] = useState(budget?.hard ?? "");
  const [atHard, setAtHard] = useState<Action>(budget?.atHard ?? "KEEP");
  const set = useAction(SetBudget);

  async function submit() {
    const limits = { soft: soft.trim() || "none", hard: hard.trim() || "none", atHard };
    const input: Input = budget
      ? { id: budget.id, ...limits }
      : {
          [holder.kind]: holder.id,
          period,
          timeZone: zone,
          endsAt: period === "TOTAL" && ends ? new Date(`${ends}T00:00`).toISOString() : null,
          ...limits,
        };
    if (!(await set.run({ input }))) return;
    onDone();
    onClose();
  }
  return (
    <FormDialog
      title={budget ? t("Edit the budget of {{holder}}", { holder: holderText(budget) }) : t("New budget")}
      onClose={onClose}
      onSubmit={() => void submit()}
      submit={budget ? t("Save") : t("Create")}
      busy={set.busy}
      failure={set.failure}
      disabled={(!budget && !holder.id) || (!soft.trim() && !hard.trim())}
      fields={["domain", "project", "user", "period", "endsAt", "timeZone", "soft", "hard", "atHard"]}
    >
      {(wrong) => (
        <>
          {budget ? null : (
            <>
              <HolderPick
                label={t("Budget of")}
                kinds={isSuper(viewer) ? ["project", "user", "domain"] : ["project", "user"]}
                value={holder}
                wrong={wrong}
                onChange={setHolder}
              />
              <div className="pair">
                <Select
                  label={t("Period")}
                  allowDeselect={false}
                  value={period}
                  error={wrong.period ?? wrong.timeZone}
                  description={period === "MONTH" ? t("Months begin in {{zone}}.", { zone }) : t("It begins now.")}
                  onChange={(value) => setPeriod((value as Period | null) ?? "MONTH")}
                  data={periods.map((value) => ({ value, label: word("BudgetPeriod", value) }))}
                />
                {period === "TOTAL" ? (
                  <TextInput
                    type="date"
                    label={t("Until")}
                    description={t("Empty: without an end")}
                    value={ends}
                    error={wrong.endsAt}
                    onChange={(e) => setEnds(e.currentTarget.value)}
                  />
                ) : null}
              </div>
            </>
          )}
          <div className="pair">
            <TextInput
              label={t("Soft limit in {{currency}}", { currency })}
              description={t("Reaching it is reported.")}
              inputMode="decimal"
              value={soft}
              error={wrong.soft}
              onChange={(e) => setSoft(e.currentTarget.value)}
            />
            <TextInput
              label={t("Hard limit in {{currency}}", { currency })}
              description={t("Sessions that would exceed it are refused.")}
              inputMode="decimal"
              value={hard}
              error={wrong.hard}
              onChange={(e) => setHard(e.currentTarget.value)}
            />
          </div>
          <Select
            label={t("At the hard limit")}
            allowDeselect={false}
            value={atHard}
            error={wrong.atHard}
            onChange={(value) => setAtHard((value as Action | null) ?? "KEEP")}
            data={actions.map((value) => ({ value, label: word("BudgetAction", value) }))}
          />
        </>
      )}
    </FormDialog>
  );
}
