import { Button, Modal } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { graphql } from "../../api/graphql";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { t } from "../../i18n";
import { type Column, Table } from "../admin/Table";
import { FailureNote } from "../Note";
import type { Task } from "../task/task";

const TransferQuery = graphql(`
  query ObjectTransfer($id: ID!) {
    node(id: $id) { id ... on Task { objectTransfer { files left failed failures { path error } } } }
  }
`);

interface Row {
  id: string;
  path: string;
  error: string | null;
}

/** Lists the items of a failed import or export, each with its error. */
export function FailedItems({ task }: { task: Task }) {
  const [opened, { open, close }] = useDisclosure(false);
  if (!task.kind.startsWith("objectstorage.") || task.status !== "FAILED") return null;
  return (
    <>
      <Button
        variant="subtle"
        size="compact-xs"
        aria-label={t("Failures of {{name}}", { name: task.title })}
        onClick={open}
      >
        {t("Failures")}
      </Button>
      <Modal
        opened={opened}
        onClose={close}
        size="lg"
        title={task.title}
        closeButtonProps={{ "aria-label": t("Close") }}
      >
        {opened ? <Failures id={task.id} message={task.message} /> : null}
      </Modal>
    </>
  );
}

function Failures({ id, message }: { id: string; message: string }) {
  const { data, failure } = useLiveQuery({ query: TransferQuery, variables: { id } });
  const of = data?.node && "objectTransfer" in data.node ? data.node.objectTransfer : null;
  const more = of ? of.failed - of.failures.length : 0;
  const columns: Column<Row>[] = [
    { head: t("Object"), cell: (f) => <code>{f.path}</code> },
    { head: t("Reason"), cell: (f) => f.error },
  ];
  return (
    <div className="stack small">
      <FailureNote failure={failure} />
      {of && of.failures.length === 0 ? <p>{message}</p> : null}
      {of && of.failures.length > 0 ? (
        <>
          <p className="dim">
            {t("{{moved}} transferred, {{left}} already there, {{failed}} failed.", {
              moved: of.files - of.left - of.failed,
              left: of.left,
              failed: of.failed,
            })}
          </p>
          <Table label={t("Failures")} rows={of.failures.map((f, i) => ({ id: String(i), ...f }))} columns={columns} />
          {more > 0 ? <p className="dim">{t("and {{count}} more", { count: more })}</p> : null}
        </>
      ) : null}
    </div>
  );
}
