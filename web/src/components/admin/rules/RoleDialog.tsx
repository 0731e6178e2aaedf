import { TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { t } from "../../../i18n";
import { FormDialog } from "../Form";
import { RoleMatrix } from "./RoleMatrix";
import { allowsOf, type Role, RoleFields, ticksOf } from "./role";

const CreateRole = graphql(
  `mutation CreateRole($input: CreateRoleInput!) { createRole(input: $input) { role { ...RoleFields } } }`,
  [RoleFields],
);
const UpdateRole = graphql(
  `mutation UpdateRole($input: UpdateRoleInput!) { updateRole(input: $input) { role { ...RoleFields } } }`,
  [RoleFields],
);

export function RoleDialog({ role, onClose, onDone }: { role: Role | null; onClose: () => void; onDone: () => void }) {
  const [name, setName] = useState(role?.name ?? "");
  const [description, setDescription] = useState(role?.description ?? "");
  const [ticks, setTicks] = useState(ticksOf(role?.allows ?? []));
  const create = useAction(CreateRole);
  const update = useAction(UpdateRole);
  const allows = allowsOf(ticks).map(({ entity, operations }) => ({ entity, operations }));
  async function submit() {
    const input = { name: name.trim(), description: description.trim(), allows };
    if (!(role ? await update.run({ input: { ...input, id: role.id } }) : await create.run({ input }))) return;
    onDone();
    onClose();
  }
  return (
    <FormDialog
      title={role ? t("Edit {{name}}", { name: role.name }) : t("New role")}
      size="xl"
      onClose={onClose}
      onSubmit={() => void submit()}
      submit={role ? t("Save") : t("Create")}
      busy={create.busy || update.busy}
      failure={create.failure ?? update.failure}
      disabled={!name.trim() || allows.length === 0}
      fields={["name", "description"]}
    >
      {(wrong) => (
        <>
          <div className="pair">
            <TextInput
              label={t("Name")}
              required
              data-autofocus
              value={name}
              error={wrong.name}
              onChange={(e) => setName(e.currentTarget.value)}
            />
            <TextInput
              label={t("Description")}
              value={description}
              error={wrong.description}
              onChange={(e) => setDescription(e.currentTarget.value)}
            />
          </div>
          <RoleMatrix ticks={ticks} onChange={setTicks} />
          {role && role.grants.length > 0 ? (
            <p className="dim">{t("It changes at once for all users who have this role.")}</p>
          ) : null}
        </>
      )}
    </FormDialog>
  );
}
