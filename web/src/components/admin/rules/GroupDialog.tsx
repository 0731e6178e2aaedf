import { Checkbox, NumberInput, Select, Switch, TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { t } from "../../../i18n";
import { FormDialog } from "../Form";
import { type Group, GroupFields, orders, sessionTypes, strategies } from "./group";

const CreateGroup = graphql(`
  mutation CreateGroup($input: CreateResourceGroupInput!) { createResourceGroup(input: $input) { resourceGroup { ...GroupFields } } }
`, [GroupFields]);
const UpdateGroup = graphql(`
  mutation UpdateGroup($input: UpdateResourceGroupInput!) { updateResourceGroup(input: $input) { resourceGroup { ...GroupFields } } }
`, [GroupFields]);

export function GroupDialog({ group, onClose, onDone }: { group: Group | null; onClose: () => void; onDone: () => void }) {
  const [name, setName] = useState(group?.name ?? "");
  const [description, setDescription] = useState(group?.description ?? "");
  const [active, setActive] = useState(group?.active ?? true);
  // A new group is closed until somebody is named: opening it to all is a choice.
  const [open, setOpen] = useState(group?.public ?? false);
  const [types, setTypes] = useState<string[]>(group?.sessionTypes ?? sessionTypes.map((s) => s.value));
  const [strategy, setStrategy] = useState(group?.strategy ?? "pack");
  const [order, setOrder] = useState(group?.order ?? "fifo");
  const [hold, setHold] = useState((group?.holdAfter ?? 600) >= 0);
  const [minutes, setMinutes] = useState<number | string>(Math.max(group?.holdAfter ?? 600, 0) / 60);
  const holdAfter = hold ? Math.round(Number(minutes) * 60) : -1;
  const create = useAction(CreateGroup);
  const update = useAction(UpdateGroup);

  async function submit() {
    const input = { name: name.trim(), description: description.trim(), public: open, sessionTypes: types, strategy, order, holdAfter };
    if (!(group ? await update.run({ input: { ...input, id: group.id, active } }) : await create.run({ input }))) return;
    onDone();
    onClose();
  }
  return (
    <FormDialog title={group ? t("Change {{name}}", { name: group.name }) : t("New resource group")} onClose={onClose} onSubmit={() => void submit()} submit={group ? t("Save") : t("Create")}
      busy={create.busy || update.busy} failure={create.failure ?? update.failure} disabled={!name.trim() || types.length === 0 || (hold && minutes === "")} fields={["name", "description", "sessionTypes", "holdAfter"]}>
      {(wrong) => (
        <>
          <TextInput label={t("Name")} required data-autofocus value={name} error={wrong.name} onChange={(e) => setName(e.currentTarget.value)} />
          <TextInput label={t("Description")} value={description} error={wrong.description} onChange={(e) => setDescription(e.currentTarget.value)} />
          <Switch label={t("Open to everybody")} description={t("Otherwise only to whom it is granted")} checked={open} onChange={(e) => setOpen(e.currentTarget.checked)} />
          {group ? <Switch label={t("Active")} description={t("An inactive group is out of sight; what runs in it goes on")} checked={active} onChange={(e) => setActive(e.currentTarget.checked)} /> : null}
          <Checkbox.Group label={t("Types of sessions")} value={types} error={wrong.sessionTypes ?? (types.length === 0 ? t("At least one.") : undefined)} onChange={setTypes}>
            <div className="row" style={{ marginTop: 4 }}>
              {sessionTypes.map((s) => <Checkbox key={s.value} value={s.value} label={t(s.label)} />)}
            </div>
          </Checkbox.Group>
          <Select label={t("Placement")} allowDeselect={false} data={strategies.map((s) => ({ value: s.value, label: t(s.label) }))} value={strategy}
            description={strategies.filter((s) => s.value === strategy).map((s) => t(s.help))} onChange={(v) => setStrategy(v as typeof strategy)} />
          <Select label={t("Order of the queue")} allowDeselect={false} data={orders.map((o) => ({ value: o.value, label: t(o.label) }))} value={order}
            description={orders.filter((o) => o.value === order).map((o) => t(o.help))} onChange={(v) => setOrder(v as typeof order)} />
          <Switch label={t("Hold agents for the first in the queue")} description={t("Otherwise smaller sessions may pass it for ever")} checked={hold} onChange={(e) => setHold(e.currentTarget.checked)} />
          {hold ? <NumberInput label={t("Minutes that it may be passed")} min={0} max={43200} value={minutes} error={wrong.holdAfter} onChange={setMinutes} /> : null}
        </>
      )}
    </FormDialog>
  );
}
