import { Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql, type VariablesOf } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { useSlotTypes } from "../../../hooks/useSlotTypes";
import { t } from "../../../i18n";
import { slotName } from "../../../slots";
import { word } from "../../../words";
import { isMemory } from "../../format";
import { FormDialog } from "../Form";
import { GroupPick } from "../Pickers";
import { nodesOf } from "../usePages";

const SetPrice = graphql(`mutation SetPrice($input: SetPriceInput!) { setPrice(input: $input) { price { id } } }`);
const DeploymentsQuery = graphql(`
  query PriceDeployments { deployments(first: 100, orderBy: [{ field: NAME }]) { edges { node { id name endedAt } } } }
`);
type Kind = NonNullable<VariablesOf<typeof SetPrice>["input"]["kind"]>;

const kinds = ["SLOT_HOUR", "INPUT_TOKENS", "CACHED_INPUT_TOKENS", "OUTPUT_TOKENS"] as const satisfies Kind[];

interface Props {
  currency: string;
  onClose: () => void;
  onDone: () => void;
}

/** Sets a price from now or from a later time on. */
export function PriceDialog({ currency, onClose, onDone }: Props) {
  const slots = useSlotTypes();
  const [kind, setKind] = useState<Kind>("SLOT_HOUR");
  const [slot, setSlot] = useState<string | null>("cpu");
  const [amount, setAmount] = useState("");
  const [from, setFrom] = useState("");
  const [group, setGroup] = useState<string | null>(null);
  const [deployment, setDeployment] = useState<string | null>(null);
  const { data } = useLiveQuery({ query: DeploymentsQuery, variables: {}, pause: kind === "SLOT_HOUR" });
  const set = useAction(SetPrice);
  const ofSlot = kind === "SLOT_HOUR";

  async function submit() {
    const input = {
      kind,
      amount: amount.trim(),
      validFrom: from ? new Date(from).toISOString() : null,
      ...(ofSlot ? { slot, resourceGroup: group } : { deployment }),
    };
    if (!(await set.run({ input }))) return;
    onDone();
    onClose();
  }
  const per = ofSlot ? (slot && isMemory(slot) ? t("per GiB and hour") : t("per hour")) : t("per 1,000 tokens");
  return (
    <FormDialog
      title={t("Set a price")}
      onClose={onClose}
      onSubmit={() => void submit()}
      submit={t("Set price")}
      busy={set.busy}
      failure={set.failure}
      disabled={!amount.trim() || (ofSlot && !slot)}
      fields={["kind", "slot", "amount", "validFrom", "resourceGroup", "deployment"]}
    >
      {(wrong) => (
        <>
          <Select
            label={t("Price of")}
            allowDeselect={false}
            value={kind}
            error={wrong.kind}
            onChange={(value) => setKind((value as Kind | null) ?? "SLOT_HOUR")}
            data={kinds.map((value) => ({ value, label: word("PriceKind", value) }))}
          />
          {ofSlot ? (
            <div className="pair">
              <Select
                label={t("Slot")}
                required
                searchable
                value={slot}
                error={wrong.slot}
                onChange={setSlot}
                data={[...slots.values()].map((s) => ({ value: s.name, label: `${slotName(s.name)} (${s.name})` }))}
              />
              <GroupPick
                label={t("Resource group")}
                placeholder={t("All")}
                value={group}
                error={wrong.resourceGroup}
                onChange={setGroup}
              />
            </div>
          ) : (
            <Select
              label={t("Deployment")}
              placeholder={t("All")}
              clearable
              value={deployment}
              error={wrong.deployment}
              onChange={setDeployment}
              data={nodesOf(data?.deployments)
                .filter((d) => d.endedAt === null)
                .map((d) => ({ value: d.id, label: d.name }))}
            />
          )}
          <div className="pair">
            <TextInput
              label={t("Amount in {{currency}} {{per}}", { currency, per })}
              required
              data-autofocus
              inputMode="decimal"
              placeholder="0.25"
              value={amount}
              error={wrong.amount}
              onChange={(e) => setAmount(e.currentTarget.value)}
            />
            <TextInput
              type="datetime-local"
              label={t("From")}
              description={t("Empty: from now on. Past costs never change.")}
              value={from}
              error={wrong.validFrom}
              onChange={(e) => setFrom(e.currentTarget.value)}
            />
          </div>
        </>
      )}
    </FormDialog>
  );
}
