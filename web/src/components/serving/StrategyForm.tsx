import { NumberInput, Select, Switch, TextInput } from "@mantine/core";
import { useState } from "react";
import { useAction } from "../../hooks/useAction";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { word } from "../../words";
import { Form } from "../admin/Form";
import { checkStrategy, type StrategyDraft, strategyDraft, strategyInput } from "./scaling";
import { type DeploymentDetail, inLine, UpdateDeployment } from "./serving";

const kinds = ["ROLLING", "BLUE_GREEN", "CANARY"] as const;

const explained = {
  ROLLING: "Replaces replicas one after another.",
  BLUE_GREEN: "Starts all replicas of the new revision, and then moves all requests at once.",
  CANARY: "Gives the new revision a growing share of the requests while it answers as well as the old one.",
} as const;

const fields = ["maxSurge", "maxUnavailable", "promoteAfter", "steps", "stepTime", "deadline", "kind"];

/** Edits how a deployment changes to another revision. */
export function StrategyForm({ deployment: d, editable }: { deployment: DeploymentDetail; editable: boolean }) {
  const [draft, setDraft] = useState(() => strategyDraft(d.strategy));
  const [tried, setTried] = useState(false);
  const { run, busy, failure } = useAction(UpdateDeployment);
  const found = checkStrategy(draft);
  const set = (more: Partial<StrategyDraft>) => setDraft((old) => ({ ...old, ...more }));

  async function submit() {
    setTried(true);
    if (Object.keys(found).length > 0) return;
    if (await run({ input: { id: d.id, strategy: strategyInput(draft) } }))
      toast({ text: t("The strategy was saved.") });
  }
  return (
    <section className="panel pad stack" aria-label={t("Strategy")}>
      <h2>{t("Change to a new revision")}</h2>
      <fieldset className="legendless" disabled={!editable}>
        <Form
          failure={failure ? { ...failure, field: failure.field?.replace(/^strategy\./, "") } : null}
          fields={fields}
          submit={t("Save")}
          plain
          busy={busy}
          disabled={!editable}
          onSubmit={() => void submit()}
        >
          {(refused) => {
            const wrong: Record<string, string> = { ...refused, ...(tried ? found : {}) };
            const errorOf = (field: string) => wrong[field] && t(wrong[field]);
            const text = (
              field: "promoteAfter" | "stepTime" | "deadline" | "steps",
              label: string,
              description: string,
            ) => (
              <TextInput
                label={label}
                inputWrapperOrder={inLine}
                description={description}
                value={draft[field]}
                error={errorOf(field)}
                onChange={(e) => set({ [field]: e.currentTarget.value })}
              />
            );
            const count = (field: "maxSurge" | "maxUnavailable", label: string, description: string) => (
              <NumberInput
                label={label}
                inputWrapperOrder={inLine}
                description={description}
                min={0}
                allowDecimal={false}
                value={draft[field]}
                error={errorOf(field)}
                onChange={(value) => set({ [field]: value })}
              />
            );
            return (
              <>
                <Select
                  maw={480}
                  label={t("Strategy")}
                  description={t(explained[draft.kind])}
                  data={kinds.map((k) => ({ value: k, label: word("DeploymentStrategyKind", k) }))}
                  value={draft.kind}
                  error={errorOf("kind")}
                  allowDeselect={false}
                  onChange={(kind) => kind && set({ kind: kind as StrategyDraft["kind"] })}
                />
                <div className="pairs wider">
                  {draft.kind === "ROLLING" ? (
                    <>
                      {count("maxSurge", t("Extra replicas"), t("beyond the wanted ones during a change"))}
                      {count("maxUnavailable", t("Missing replicas"), t("of the wanted ones during a change"))}
                    </>
                  ) : null}
                  {draft.kind === "BLUE_GREEN"
                    ? text("promoteAfter", t("Wait before the move"), t("after all replicas are ready"))
                    : null}
                  {draft.kind === "CANARY" ? (
                    <>
                      {text("steps", t("Steps, %"), t("shares of the requests, one after another"))}
                      {text("stepTime", t("Time of a step"), t("at least"))}
                    </>
                  ) : null}
                  {text("deadline", t("Deadline"), t("A change that has not ended is rolled back."))}
                </div>
                {draft.kind === "BLUE_GREEN" ? (
                  <Switch
                    label={t("Move the requests without a person")}
                    description={t("Otherwise, somebody presses Promote.")}
                    checked={draft.autoPromote}
                    onChange={(e) => set({ autoPromote: e.currentTarget.checked })}
                  />
                ) : null}
              </>
            );
          }}
        </Form>
      </fieldset>
    </section>
  );
}
