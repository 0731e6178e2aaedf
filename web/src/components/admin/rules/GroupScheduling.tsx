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

/** How the scheduler treats the queue and the machines of a group. */
export function GroupScheduling({ draft, wrong, onChange }: Props) {
  const time = (key: keyof GroupDraft["times"], label: string, help: string) => (
    <TextInput label={label} description={help} inputWrapperOrder={["label", "input", "description", "error"]} value={draft.times[key]} error={wrong[key]} onChange={(e) => onChange({ times: { ...draft.times, [key]: e.currentTarget.value } })} />
  );
  return (
    <>
      <fieldset className="legendless stack small">
        <legend>{t("Where sessions start")}</legend>
        <Pick label={t("Placement")} choices={strategies} value={draft.strategy} onChange={(strategy) => onChange({ strategy })} />
        <Pick label={t("More than one device has")} choices={splits} value={draft.split} onChange={(split) => onChange({ split })} />
        <Pick label={t("Several devices")} choices={topologies} value={draft.topology} onChange={(topology) => onChange({ topology })} />
      </fieldset>
      <fieldset className="legendless stack small">
        <legend>{t("Who starts first")}</legend>
        <Pick label={t("Order of the queue")} choices={orders} value={draft.order} onChange={(order) => onChange({ order })} />
        {draft.order === "fair_share" ? (
          <div className="pairs">
            {time("halfLife", t("Half-life of usage"), t("After it, usage counts half."))}
            {time("lookback", t("Usage is forgotten after"), t("Older usage counts nothing."))}
          </div>
        ) : null}
        <Switch label={t("Hold agents for the first in the queue")} description={t("Otherwise smaller sessions may pass it for ever")} checked={draft.hold} onChange={(e) => onChange({ hold: e.currentTarget.checked })} />
        {draft.hold ? <div className="pairs">{time("holdAfter", t("It may be passed for"), t("Such as 10min; 0 for not at all."))}</div> : null}
        <Pick label={t("End sessions for more important ones")} choices={preemptions} value={draft.preemption} onChange={(preemption) => onChange({ preemption })} />
        {draft.preemption === "off" ? null : (
          <div className="pairs">
            <Select label={t("Only sessions")} allowDeselect={false} data={preemptionScopes.map((s) => ({ value: s.value, label: t(s.label) }))} value={draft.preemptionScope} onChange={(v) => v && onChange({ preemptionScope: v as GroupDraft["preemptionScope"] })} />
            {time("preemptionAfter", t("That have run for"), t("Such as 5min."))}
          </div>
        )}
      </fieldset>
      <fieldset className="legendless stack small">
        <legend>{t("When something goes wrong")}</legend>
        <Pick label={t("Sessions of a lost agent")} choices={lostPolicies} value={draft.lostPolicy} onChange={(lostPolicy) => onChange({ lostPolicy })} />
        <div className="pairs">
          {draft.lostPolicy === "wait" ? null : time("lostAfter", t("An agent is lost after"), t("Until then it may come back."))}
          <NumberInput inputWrapperOrder={["label", "input", "description", "error"]} label={t("Attempts to start")} description={t("Then a session is given up.")} min={1} max={100} value={draft.maxAttempts} error={wrong.maxAttempts} onChange={(maxAttempts) => onChange({ maxAttempts })} />
          {time("pendingTimeout", t("Waits for at most"), t("0 is for ever."))}
        </div>
      </fieldset>
    </>
  );
}

/** One of a few, with what it means below. */
function Pick<C extends Choice>({ label, choices, value, onChange }: { label: string; choices: readonly C[]; value: C["value"]; onChange: (value: C["value"]) => void }) {
  return (
    <Select label={label} allowDeselect={false} inputWrapperOrder={["label", "input", "description", "error"]} data={choices.map((c) => ({ value: c.value, label: t(c.label) }))} value={value}
      description={choices.filter((c) => c.value === value).map((c) => t(c.help))} onChange={(v) => v && onChange(v as C["value"])} />
  );
}
