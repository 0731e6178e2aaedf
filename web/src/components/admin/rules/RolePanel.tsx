import { Button } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { t } from "../../../i18n";
import { Confirm } from "../../Confirm";
import { Part, SidePanel } from "../Panel";
import { RoleGrants } from "./RoleGrants";
import { RoleMatrix } from "./RoleMatrix";
import { type Role, ticksOf } from "./role";

const DeleteRole = graphql(`mutation DeleteRole($input: DeleteRoleInput!) { deleteRole(input: $input) { id } }`);

interface Props {
  role: Role;
  onEdit: () => void;
  onClose: () => void;
  onDone: () => void;
}

export function RolePanel({ role, onEdit, onClose, onDone }: Props) {
  const [deleting, setDeleting] = useState(false);
  const { run, busy, failure, clear } = useAction(DeleteRole);
  const can = (op: (typeof role.permissions)[number]) => role.permissions.includes(op);
  async function remove() {
    if (!(await run({ input: { id: role.id } }))) return;
    onDone();
    onClose();
  }
  return (
    <SidePanel title={role.name} onClose={onClose}>
      <Part
        title={t("Permissions")}
        aside={
          <>
            {can("UPDATE") ? (
              <Button variant="default" onClick={onEdit}>
                {t("Edit")}
              </Button>
            ) : null}
            {can("DELETE") ? (
              <Button
                variant="subtle"
                color="red"
                onClick={() => {
                  clear();
                  setDeleting(true);
                }}
              >
                {t("Delete")}
              </Button>
            ) : null}
          </>
        }
      >
        {role.description ? <p>{role.description}</p> : null}
        {role.allows.length > 0 ? <RoleMatrix ticks={ticksOf(role.allows)} /> : <p className="dim">{t("nothing")}</p>}
      </Part>
      <RoleGrants role={role} onDone={onDone} />
      <Confirm
        opened={deleting}
        title={t("Delete {{name}}?", { name: role.name })}
        action={t("Delete")}
        busy={busy}
        failure={failure}
        onClose={() => setDeleting(false)}
        onConfirm={() => void remove()}
      >
        {role.grants.length > 0
          ? t("All users who have it lose it at once ({{count}} grants).", { count: role.grants.length })
          : t("No user that you can see has this role.")}
      </Confirm>
    </SidePanel>
  );
}
