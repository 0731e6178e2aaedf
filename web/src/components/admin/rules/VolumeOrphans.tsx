import { Button, Modal } from "@mantine/core";
import { useState } from "react";
import { useQuery } from "urql";
import { fromGraphQL } from "../../../api/errors";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { useFocusBack } from "../../../hooks/useFocusBack";
import { t } from "../../../i18n";
import { bytes } from "../../format";
import { FailureNote } from "../../Note";
import { TaskState } from "../../task/TaskState";
import { Form } from "../Form";
import { Part } from "../Panel";
import { type Orphan, orphansOf } from "./orphan";

const OrphansQuery = graphql(`
  query Orphans($id: ID!) {
    node(id: $id) {
      ... on Volume {
        id
        orphans {
          complete scopes { scope usedBytes } folders { state scope folder path }
          missing { id name owner { id email } project { id name } }
        }
      }
    }
  }
`);
const DeleteOrphan = graphql(
  `mutation DeleteOrphan($input: DeleteOrphanInput!) { deleteOrphan(input: $input) { task { id status } } }`,
);

/** Lists orphans of a volume. The search starts only on request, because it reads the whole volume. */
export function VolumeOrphans({ volume }: { volume: { id: string; name: string } }) {
  const [requested, setRequested] = useState(false);
  const [deleting, setDeleting] = useState<Orphan | null>(null);
  const [{ data, error, fetching }, again] = useQuery({
    query: OrphansQuery,
    variables: { id: volume.id },
    pause: !requested,
    requestPolicy: "network-only",
  });
  const found = requested && data?.node && "orphans" in data.node ? data.node.orphans : null;
  const orphans = found ? orphansOf(found) : [];
  const none = found && orphans.length + found.missing.length === 0;
  return (
    <Part
      title={t("Orphans")}
      aside={
        <Button variant="default" loading={fetching} onClick={() => (requested ? again() : setRequested(true))}>
          {requested ? t("Scan again") : t("Scan now")}
        </Button>
      }
    >
      <p className="dim">{t("Data on the volume that has no owner, and folders that are missing from the volume.")}</p>
      <FailureNote failure={error ? fromGraphQL(error) : null} />
      {none ? <p role="status">{t("No orphans: all data on the volume has an owner.")}</p> : null}
      {found && found.missing.length > 0 ? (
        <>
          <p className="bad" role="status">
            {t("These folders are missing from the volume. Restore them from a backup, or delete them.")}
          </p>
          <ul className="rows" aria-label={t("Missing folders")}>
            {found.missing.map((f) => (
              <li key={f.id}>
                <b>{f.name}</b>{" "}
                <span className="dim">
                  {f.project ? t("project {{name}}", { name: f.project.name }) : f.owner?.email}
                </span>
              </li>
            ))}
          </ul>
        </>
      ) : null}
      {orphans.length > 0 ? (
        <ul className="rows" aria-label={t("Orphans")}>
          {orphans.map((o) => (
            <li key={o.name} style={{ flexWrap: "wrap" }}>
              <span style={{ flex: "1 1 300px", minWidth: 0 }}>
                <span className="tone-wait">{t(o.what)}</span>{" "}
                {o.usedBytes === null ? null : <span className="dim">{bytes(o.usedBytes)}</span>}
                <div>
                  <code style={{ overflowWrap: "anywhere" }}>{o.name}</code>
                </div>
              </span>
              {o.input ? (
                <Button
                  variant="subtle"
                  color="red"
                  size="compact-xs"
                  aria-label={t("Remove {{name}}", { name: o.name })}
                  onClick={() => setDeleting(o)}
                >
                  {t("Remove")}
                </Button>
              ) : (
                <span className="dim">{t("must be removed manually")}</span>
              )}
            </li>
          ))}
        </ul>
      ) : null}
      {found && !found.complete ? (
        <p className="tone-wait">{t("There are more. At most 1000 of each are shown.")}</p>
      ) : null}
      {deleting?.input ? (
        <RemoveDialog
          volume={volume}
          orphan={deleting}
          onClose={() => setDeleting(null)}
          onGone={() => {
            setDeleting(null);
            again();
          }}
        />
      ) : null}
    </Part>
  );
}

function RemoveDialog({
  volume,
  orphan,
  onClose,
  onGone,
}: {
  volume: { id: string; name: string };
  orphan: Orphan;
  onClose: () => void;
  onGone: () => void;
}) {
  useFocusBack();
  const { run, busy, failure } = useAction(DeleteOrphan);
  const [task, setTask] = useState<string | null>(null);
  return (
    <Modal
      opened
      onClose={task ? onGone : onClose}
      size={560}
      title={t("Delete it permanently?")}
      closeButtonProps={{ "aria-label": t("Close") }}
    >
      {task ? (
        <TaskState id={task} onClose={onGone} />
      ) : (
        <Form
          failure={failure}
          fields={[]}
          submit={t("Delete permanently")}
          danger
          busy={busy}
          onCancel={onClose}
          onSubmit={async () => {
            const done = await run({ input: { volume: volume.id, ...orphan.input! } });
            if (done) setTask(done.deleteOrphan.task.id);
          }}
        >
          {() => (
            <>
              <p>
                {orphan.input?.folder
                  ? t(
                      "All files in it are deleted from {{volume}}. This cannot be undone, and their owner is unknown.",
                      { volume: volume.name },
                    )
                  : t("The scope and its contents are deleted from {{volume}}. This cannot be undone.", {
                      volume: volume.name,
                    })}
              </p>
              <code style={{ overflowWrap: "anywhere" }}>{orphan.name}</code>
              <p className="dim">{t("Before the deletion, Berth checks again that it has no owner.")}</p>
            </>
          )}
        </Form>
      )}
    </Modal>
  );
}
