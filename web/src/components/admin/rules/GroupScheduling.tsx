import { NumberInput, Select, Switch, TextInput } from "@mantine/core";
import { t } from "../../../i18n";
import { lostPolicies, orders, preemptionScopes, preemptions, splits, strategies, topologies } from "./group";
import type { GroupDraft } from "./groupdraft";

interface Props {
  draft: GroupDraft;
  wrong: Record<string, string | undefined>;
  onChange: (more: Partial<GroupDraft>) => void;
}

interface Choice {
  value: string;
  label: string;
  help: string;
}

/** Edits how the scheduler treats the queue and the machines of a group. */
export function GroupScheduling({ draft, wrong, onChange }: Props) {
  const time = (key: keyof GroupDraft["times"], label: string, help: string) => (
    <TextInput
      label={label}
      description={help}
      inputWrapperOrder={["label", "input", "description", "error"]}
      value={draft.times[key]}
      error={wrong[key]}
      onChange={(e) => onChange({ times: { ...draft.times, [key]: e.currentTarget.value } })}
    />
  );
  return (
    <>
      <fieldset className="legendless stack small">
        <legend>{t("Placement of sessions")}</legend>
        <Pick
          label={t("Placement strategy")}
          choices={strategies}
          value={draft.strategy}
          onChange={(strategy) => onChange({ strategy })}
        />
        <Pick
          label={t("Device packing")}
          choices={splits}
          value={draft.split}
          onChange={(split) => onChange({ split })}
        />
        <Pick
          label={t("Device locality")}
          choices={topologies}
          value={draft.topology}
          onChange={(topology) => onChange({ topology })}
        />
      </fieldset>
      <fieldset className="legendless stack small">
        <legend>{t("Order of sessions")}</legend>
        <Pick label={t("Queue order")} choices={orders} value={draft.order} onChange={(order) => onChange({ order })} />
        {draft.order === "FAIR_SHARE" ? (
          <div className="pairs">
            {time("halfLife", t("Half-life of usage"), t("After this time, usage counts half."))}
            {time("lookback", t("Ignore usage after"), t("Older usage is ignored."))}
          </div>
        ) : null}
        <Switch
          label={t("Reserve agents for the head of the queue")}
          description={t("Otherwise, smaller sessions can overtake it without limit.")}
          checked={draft.hold}
          onChange={(e) => onChange({ hold: e.currentTarget.checked })}
        />
        {draft.hold ? (
          <div className="pairs">
            {time(
              "holdAfter",
              t("Reserve after"),
              t("How long smaller sessions can overtake it, such as 10min. Enter 0 to reserve at once."),
            )}
          </div>
        ) : null}
        <Pick
          label={t("Preemption")}
          choices={preemptions}
          value={draft.preemption}
          onChange={(preemption) => onChange({ preemption })}
        />
        {draft.preemption === "OFF" ? null : (
          <div className="pairs">
            <Select
              label={t("Preemptible sessions")}
              allowDeselect={false}
              data={preemptionScopes.map((s) => ({ value: s.value, label: t(s.label) }))}
              value={draft.preemptionScope}
              onChange={(v) => v && onChange({ preemptionScope: v as GroupDraft["preemptionScope"] })}
            />
            {time("preemptionAfter", t("Minimum run time"), t("Such as 5min."))}
          </div>
        )}
      </fieldset>
      <fieldset className="legendless stack small">
        <legend>{t("Failures and timeouts")}</legend>
        <Pick
          label={t("Sessions of a lost agent")}
          choices={lostPolicies}
          value={draft.lostPolicy}
          onChange={(lostPolicy) => onChange({ lostPolicy })}
        />
        <div className="pairs">
          {draft.lostPolicy === "WAIT"
            ? null
            : time("lostAfter", t("Delay after the loss of an agent"), t("The agent can reconnect until then."))}
          <NumberInput
            inputWrapperOrder={["label", "input", "description", "error"]}
            label={t("Start attempts")}
            description={t("After these attempts, the session fails.")}
            min={1}
            max={100}
            value={draft.maxAttempts}
            error={wrong.maxAttempts}
            onChange={(maxAttempts) => onChange({ maxAttempts })}
          />
          {time("pendingTimeout", t("Pending timeout"), t("Enter 0 for no timeout."))}
        </div>
      </fieldset>
    </>
  );
}

/** Selects one of a few values, with the meaning of the selected value below. */
function Pick<C extends Choice>({
  label,
  choices,
  value,
  onChange,
}: {
  label: string;
  choices: readonly C[];
  value: C["value"];
  onChange: (value: C["value"]) => void;
}) {
  return (
    <Select
      label={label}
      allowDeselect={false}
      inputWrapperOrder={["label", "input", "description", "error"]}
      data={choices.map((c) => ({ value: c.value, label: t(c.label) }))}
      value={value}
      description={choices.filter((c) => c.value === value).map((c) => t(c.help))}
      onChange={(v) => v && onChange(v as C["value"])}
    />
  );
}
