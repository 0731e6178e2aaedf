import { Button } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { useViewer } from "../../../hooks/useViewer";
import { t } from "../../../i18n";
import { Confirm } from "../../Confirm";
import { FailureNote } from "../../Note";
import { Part, SidePanel } from "../Panel";
import { AttachDialog } from "./AttachDialog";
import { Attachments } from "./Attachments";
import { AttachmentFields } from "./attachment";
import { PolicyWords } from "./PolicyWords";
import type { Policy } from "./policy";
import { attachableHolders } from "./rights";

const BoundQuery = graphql(
  `
  query PolicyAttachments($id: ID!) {
    node(id: $id) { id ... on ResourcePolicy { attachments { ...AttachmentFields } } }
  }
`,
  [AttachmentFields],
);
const DeletePolicy = graphql(
  `mutation DeletePolicy($input: DeleteResourcePolicyInput!) { deleteResourcePolicy(input: $input) { id } }`,
);

interface Props {
  policy: Policy;
  onEdit: () => void;
  onClose: () => void;
  onGone: () => void;
}

export function PolicyPanel({ policy, onEdit, onClose, onGone }: Props) {
  const viewer = useViewer();
  const { data, failure: unread, refetch } = useLiveQuery({ query: BoundQuery, variables: { id: policy.id } });
  const attached = data?.node && "attachments" in data.node ? data.node.attachments : [];
  const can = (op: (typeof policy.permissions)[number]) => policy.permissions.includes(op);
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
      <Part
        title={t("Limits")}
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
        <PolicyWords policy={policy} />
      </Part>
      <Part
        title={t("Attached to")}
        aside={
          attachableHolders(viewer).length > 0 ? (
            <Button variant="light" onClick={() => setAttaching(true)}>
              {t("Attach")}
            </Button>
          ) : null
        }
      >
        <FailureNote failure={unread} />
        {attached.length > 0 ? (
          <Attachments label={t("Attached to")} list={attached} first="holder" onDone={refetch} />
        ) : null}
        {data && attached.length === 0 ? <p className="dim">{t("None that you can see.")}</p> : null}
      </Part>
      {attaching ? <AttachDialog policy={policy} onClose={() => setAttaching(false)} onDone={refetch} /> : null}
      <Confirm
        opened={deleting}
        title={t("Delete {{name}}?", { name: policy.name })}
        action={t("Delete")}
        busy={busy}
        failure={failure}
        onClose={() => setDeleting(false)}
        onConfirm={() => void remove()}
      >
        {t("You cannot delete a policy that is attached.")}
      </Confirm>
    </SidePanel>
  );
}
