import { Button } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { useViewer } from "../../../hooks/useViewer";
import { t } from "../../../i18n";
import { Confirm } from "../../Confirm";
import { FailureNote } from "../../Note";
import { Part, SidePanel } from "../Panel";
import { isSuper } from "../nav";
import { AttachDialog } from "./AttachDialog";
import { Attachments } from "./Attachments";
import { PolicyWords } from "./PolicyWords";
import type { Policy } from "./policy";
import { useBound } from "./useBound";

const DeletePolicy = graphql(`mutation DeletePolicy($input: DeleteResourcePolicyInput!) { deleteResourcePolicy(input: $input) { id } }`);

interface Props {
  policy: Policy;
  onEdit: () => void;
  onClose: () => void;
  onGone: () => void;
}

export function PolicyPanel({ policy, onEdit, onClose, onGone }: Props) {
  const viewer = useViewer();
  const superadmin = isSuper(viewer);
  const bound = useBound(policy.id);
  const [attaching, setAttaching] = useState(false);
  const [deleting, setDeleting] = useState(false);
  const { run, busy, failure, clear } = useAction(DeletePolicy);
  async function remove() {
    if (!(await run({ input: { id: policy.id } }))) return;
    onGone();
    onClose();
  }
  return (
    <SidePanel title={policy.name} onClose={onClose}>
      <Part title={t("What it limits")} aside={superadmin ? (
        <>
          <Button variant="default" onClick={onEdit}>{t("Change")}</Button>
          <Button variant="subtle" color="red" onClick={() => { clear(); setDeleting(true); }}>{t("Delete")}</Button>
        </>
      ) : null}>
        <PolicyWords policy={policy} />
      </Part>
      <Part title={t("Whom it binds")} aside={superadmin || viewer.user.role === "admin" ? <Button variant="light" onClick={() => setAttaching(true)}>{t("Attach")}</Button> : null}>
        <FailureNote failure={bound.failure} />
        {bound.list.length > 0 ? <Attachments label={t("Whom it binds")} list={bound.list} first="holder" onDone={bound.reload} /> : null}
        <p className="dim" role="status">
          {!bound.done ? t("Looked at {{count}} domains, projects and users…", { count: bound.looked }) : bound.list.length === 0 ? t("No domain, project or user in sight.") : t("Keypairs are not listed here.")}
        </p>
      </Part>
      {attaching ? <AttachDialog policy={policy} onClose={() => setAttaching(false)} onDone={bound.reload} /> : null}
      <Confirm opened={deleting} title={t("Delete {{name}}?", { name: policy.name })} action={t("Delete")} busy={busy} failure={failure} onClose={() => setDeleting(false)} onConfirm={() => void remove()}>
        {t("A policy that is attached somewhere is not deleted.")}
      </Confirm>
    </SidePanel>
  );
}
