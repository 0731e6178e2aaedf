import { Modal } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { useFocusBack } from "../../hooks/useFocusBack";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { t } from "../../i18n";
import { Form } from "../admin/Form";
import { UserPick } from "../admin/Pickers";
import { bytes } from "../format";
import { FailureNote } from "../Note";
import { TaskState } from "../task/TaskState";
import type { Folder } from "./folder";
import { liveShares, ShareFields } from "./share";

const HandedQuery = graphql(
  `
  query HandedFolder($id: ID!) {
    node(id: $id) {
      ... on Vfolder {
        id name owner { id email domain { id } } mountedBy { id version name status } shares { ...ShareFields }
      }
    }
  }
`,
  [ShareFields],
);
const HandOverVfolder = graphql(`
  mutation HandOverVfolder($input: HandOverVfolderInput!) {
    handOverVfolder(input: $input) { vfolder { id name status } task { id status } }
  }
`);

/** Transfers a folder to another user of the domain: shows the effects before the start, and the progress after it. */
export function HandOver({ folder, onClose, onDone }: { folder: Folder; onClose: () => void; onDone: () => void }) {
  useFocusBack();
  const { data, failure: unread } = useLiveQuery({
    query: HandedQuery,
    variables: { id: folder.id },
    requestPolicy: "network-only",
  });
  const { run, busy, failure } = useAction(HandOverVfolder);
  const [to, setTo] = useState<string | null>(null);
  const [newOwner, setNewOwner] = useState("");
  const [task, setTask] = useState<string | null>(null);
  const known = data?.node && "mountedBy" in data.node ? data.node : null;
  const owner = known?.owner;
  const sessions = known?.mountedBy ?? [];
  const shares = liveShares(known?.shares ?? []);
  const close = () => {
    if (task) onDone();
    onClose();
  };
  return (
    <Modal
      opened
      onClose={close}
      size={560}
      title={t("Hand over {{name}}", { name: folder.name })}
      closeButtonProps={{ "aria-label": t("Close") }}
    >
      <FailureNote failure={unread} />
      {task ? <TaskState id={task} onClose={close} /> : null}
      {owner && !task ? (
        <Form
          failure={failure}
          fields={["user", "id"]}
          submit={to ? t("Hand over to {{name}}", { name: newOwner }) : t("Hand over")}
          busy={busy}
          disabled={!to || sessions.length > 0}
          onCancel={onClose}
          onSubmit={async () => {
            const done = to && (await run({ input: { id: folder.id, user: to } }));
            if (done) setTask(done.handOverVfolder.task.id);
          }}
        >
          {(wrong) => (
            <>
              {sessions.length > 0 ? (
                <p className="tone-wait" role="status">
                  {t("Running sessions use this folder. You can hand it over when they have ended:")}{" "}
                  {sessions.map((s, i) => (
                    <span key={s.id}>
                      {i > 0 ? ", " : ""}
                      <Link to="/sessions/$id" params={{ id: s.id }}>
                        {s.name}
                      </Link>
                    </span>
                  ))}
                </p>
              ) : null}
              <UserPick
                label={t("New owner")}
                required
                description={t("An active user of the same domain.")}
                domain={owner.domain.id}
                exclude={new Set([owner.id])}
                value={to}
                error={wrong.user ?? wrong.id}
                onChange={(id, label) => {
                  setTo(id);
                  setNewOwner(label);
                }}
              />
              <div>
                <b>{t("Effects")}</b>
                <ul className="points">
                  <li>
                    {t("{{owner}} loses access to the folder, unless it is shared with them afterwards.", {
                      owner: owner.email,
                    })}
                  </li>
                  <li>
                    {t(
                      "Its files count toward the quota of the new owner on {{volume}}, and no longer toward that of {{owner}}.",
                      { volume: folder.quotaScope.volume.name, owner: owner.email },
                    )}
                    {folder.usedBytes === null ? "" : ` (${bytes(folder.usedBytes)})`}
                  </li>
                  <li>
                    {shares.length === 0
                      ? t("It is not shared with anyone.")
                      : t("It stays shared with {{who}}.", {
                          who:
                            shares
                              .slice(0, 5)
                              .map((s) => s.email)
                              .join(", ") + (shares.length > 5 ? " …" : ""),
                        })}
                  </li>
                  <li>{t("If the new owner already has a folder with this name, a number is added to the name.")}</li>
                </ul>
              </div>
            </>
          )}
        </Form>
      ) : null}
    </Modal>
  );
}
