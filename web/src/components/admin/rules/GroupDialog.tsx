import { Checkbox, Switch, TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { t } from "../../../i18n";
import { FormDialog } from "../Form";
import { type Group, GroupFields, sessionTypes } from "./group";

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
  const create = useAction(CreateGroup);
  const update = useAction(UpdateGroup);

  async function submit() {
    const input = { name: name.trim(), description: description.trim(), public: open, sessionTypes: types };
    if (!(group ? await update.run({ input: { ...input, id: group.id, active } }) : await create.run({ input }))) return;
    onDone();
    onClose();
  }
  return (
    <FormDialog title={group ? t("Change {{name}}", { name: group.name }) : t("New resource group")} onClose={onClose} onSubmit={() => void submit()} submit={group ? t("Save") : t("Create")}
      busy={create.busy || update.busy} failure={create.failure ?? update.failure} disabled={!name.trim() || types.length === 0} fields={["name", "description", "sessionTypes"]}>
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
        </>
      )}
    </FormDialog>
  );
}
