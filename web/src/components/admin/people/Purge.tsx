import { Modal, SegmentedControl, TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { useFocusBack } from "../../../hooks/useFocusBack";
import { t } from "../../../i18n";
import { TaskState } from "../../task/TaskState";
import { Form } from "../Form";
import { UserPick } from "../Pickers";
import type { OneUser } from "./user";

const Purging = graphql(
  `mutation DeleteUser($input: DeleteUserInput!) { deleteUser(input: $input) { task { id status } } }`,
);

/** Removes a user permanently. Their folders are transferred to another user or deleted. */
export function Purge({ user, onClose, onGone }: { user: OneUser; onClose: () => void; onGone: () => void }) {
  useFocusBack();
  const { run, busy, failure } = useAction(Purging);
  const [how, setHow] = useState("hand");
  const [to, setTo] = useState<string | null>(null);
  const [typed, setTyped] = useState("");
  const [task, setTask] = useState<string | null>(null);
  const close = task ? onGone : onClose;
  return (
    <Modal
      opened
      onClose={close}
      closeOnClickOutside={!task}
      size={560}
      title={t("Purge {{name}}", { name: user.email })}
      closeButtonProps={{ "aria-label": t("Close") }}
    >
      {task ? (
        <TaskState id={task} onClose={onGone} />
      ) : (
        <Form
          failure={failure}
          fields={["foldersTo", "deleteFolders"]}
          submit={t("Purge permanently")}
          danger
          busy={busy}
          disabled={typed !== user.email}
          onCancel={onClose}
          onSubmit={async () => {
            const done = await run({
              input: { id: user.id, foldersTo: how === "hand" ? to : null, deleteFolders: how === "delete" },
            });
            if (done) setTask(done.deleteUser.task.id);
          }}
        >
          {(wrong) => (
            <>
              <p>
                {t(
                  "The user's sessions and logins end, and the account is deleted with its keys, memberships and limits. Its entries in the audit log stay. This cannot be undone.",
                )}
              </p>
              <div className="stack small">
                <SegmentedControl
                  aria-label={t("Folders of the user")}
                  value={how}
                  onChange={setHow}
                  data={[
                    { value: "hand", label: t("Hand over the folders") },
                    { value: "delete", label: t("Delete the folders") },
                  ]}
                />
                {how === "hand" ? (
                  <UserPick
                    label={t("New owner of the folders")}
                    description={t("An active user of the same domain. Leave empty if the user has no folders.")}
                    domain={user.domain.id}
                    exclude={new Set([user.id])}
                    value={to}
                    error={wrong.foldersTo}
                    onChange={setTo}
                  />
                ) : (
                  <p className="bad">{t("All files in the folders are deleted permanently.")}</p>
                )}
              </div>
              <TextInput
                label={t("Type {{name}} to confirm", { name: user.email })}
                value={typed}
                autoComplete="off"
                onChange={(e) => setTyped(e.currentTarget.value)}
              />
            </>
          )}
        </Form>
      )}
    </Modal>
  );
}
