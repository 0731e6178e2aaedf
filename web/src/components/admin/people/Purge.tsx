import { Modal, SegmentedControl, TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { useFocusBack } from "../../../hooks/useFocusBack";
import { t } from "../../../i18n";
import { Form } from "../Form";
import { UserPick } from "../Pickers";
import type { OneUser } from "./UserPanel";
import { TaskState } from "../../task/TaskState";

const Purging = graphql(`mutation PurgeUser($input: PurgeUserInput!) { purgeUser(input: $input) { task { id status } } }`);

/** Removes a user for ever; who owns folders leaves them to somebody, or they go with him. */
export function Purge({ user, onClose, onGone }: { user: OneUser; onClose: () => void; onGone: () => void }) {
  useFocusBack();
  const { run, busy, failure } = useAction(Purging);
  const [how, setHow] = useState("hand");
  const [to, setTo] = useState<string | null>(null);
  const [typed, setTyped] = useState("");
  const [task, setTask] = useState<string | null>(null);
  const close = task ? onGone : onClose;
  return (
    <Modal opened onClose={close} closeOnClickOutside={!task} size={560} title={t("Purge {{name}}", { name: user.email })} closeButtonProps={{ "aria-label": t("Close") }}>
      {task ? <TaskState id={task} onClose={onGone} /> : (
        <Form failure={failure} fields={["foldersTo", "deleteFolders"]} submit={t("Purge for ever")} danger busy={busy} disabled={typed !== user.email} onCancel={onClose}
          onSubmit={async () => {
            const done = await run({ input: { id: user.id, foldersTo: how === "hand" ? to : null, deleteFolders: how === "delete" } });
            if (done) setTask(done.purgeUser.task.id);
          }}>
          {(wrong) => (
            <>
              <p>{t("His sessions and logins end, and he is removed with his keys, memberships and limits. What he did stays in the audit log. This cannot be undone.")}</p>
              <div className="stack small">
                <SegmentedControl aria-label={t("His folders")} value={how} onChange={setHow} data={[{ value: "hand", label: t("Hand his folders over") }, { value: "delete", label: t("Delete his folders") }]} />
                {how === "hand" ? (
                  <UserPick label={t("Who gets his folders")} description={t("Somebody active of the same domain. May stay empty where he has none.")} domain={user.domain.id} exclude={new Set([user.id])} value={to} error={wrong.foldersTo} onChange={setTo} />
                ) : <p className="bad">{t("Their files are deleted for ever.")}</p>}
              </div>
              <TextInput label={t("Type {{name}} to go on", { name: user.email })} value={typed} autoComplete="off" onChange={(e) => setTyped(e.currentTarget.value)} />
            </>
          )}
        </Form>
      )}
    </Modal>
  );
}
