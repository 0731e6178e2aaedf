import { Button, Modal } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { graphql } from "../api/graphql";
import { type Column, Table } from "../components/admin/Table";
import { usePages } from "../components/admin/usePages";
import { Confirm } from "../components/Confirm";
import { Empty, FailureNote } from "../components/Note";
import { ObjectBrowser } from "../components/objectstorage/ObjectBrowser";
import { StorageDialog, TestStorage } from "../components/objectstorage/StorageDialog";
import { type Storage, StoragesQuery, s3URL } from "../components/objectstorage/storage";
import { useAction } from "../hooks/useAction";
import { toast } from "../hooks/useToasts";
import { t } from "../i18n";

const DeleteStorage = graphql(
  `mutation DeleteObjectStorage($input: DeleteObjectStorageInput!) { deleteObjectStorage(input: $input) { id } }`,
);

/** Lists the object storages of the viewer and of their domain, for imports and exports. */
export function ObjectStorages() {
  const list = usePages({ query: StoragesQuery, variables: {}, pick: (data) => data.objectStorages });
  const test = useAction(TestStorage, true);
  const remove = useAction(DeleteStorage);
  const [edited, setEdited] = useState<Storage | "new" | null>(null);
  const [browsed, setBrowsed] = useState<Storage | null>(null);
  const [path, setPath] = useState("");
  const [deleting, setDeleting] = useState<Storage | null>(null);
  const [asking, setAsking] = useState<string | null>(null);

  async function ask(s: Storage) {
    setAsking(s.id);
    const r = (await test.run({ input: { id: s.id } }))?.testObjectStorage;
    setAsking(null);
    if (r?.ok) toast({ text: t("{{name}} responds.", { name: s.name }) });
    else if (r) toast({ failure: { code: "FAILED_PRECONDITION", message: `${s.name}: ${r.message ?? ""}` } });
  }
  async function confirmed() {
    if (!deleting || !(await remove.run({ input: { id: deleting.id } }))) return;
    setDeleting(null);
    list.reload();
  }
  const columns: Column<Storage>[] = [
    {
      head: t("Name"),
      cell: (s) => (
        <>
          <b className="nowrap">{s.name}</b>
          {s.readOnly ? (
            <>
              {" "}
              <span className="tag">{t("read-only")}</span>
            </>
          ) : null}
        </>
      ),
    },
    {
      head: t("Location"),
      cell: (s) => (
        <>
          <code>{s3URL(s)}</code>
          <div className="dim">
            {s.endpoint}
            {s.region ? ` · ${s.region}` : ""}
          </div>
        </>
      ),
    },
    {
      head: t("Access key"),
      wide: true,
      cell: (s) => (s.accessKeyID ? <code>{s.accessKeyID}</code> : <span className="dim">{t("none")}</span>),
    },
    {
      head: t("Available to"),
      cell: (s) => (s.domain ? t("domain {{name}}", { name: s.domain.name }) : (s.owner?.email ?? t("you"))),
    },
    {
      head: t("Actions"),
      num: true,
      cell: (s) => (
        <span className="nowrap">
          {s.permissions.includes("TRANSFER") ? (
            <>
              <Button
                variant="subtle"
                size="compact-xs"
                aria-label={t("Browse {{name}}", { name: s.name })}
                onClick={() => {
                  setPath("");
                  setBrowsed(s);
                }}
              >
                {t("Browse")}
              </Button>
              <Button
                variant="subtle"
                size="compact-xs"
                loading={asking === s.id}
                aria-label={t("Test {{name}}", { name: s.name })}
                onClick={() => void ask(s)}
              >
                {t("Test")}
              </Button>
            </>
          ) : null}
          {s.permissions.includes("UPDATE") ? (
            <Button
              variant="subtle"
              size="compact-xs"
              aria-label={t("Edit {{name}}", { name: s.name })}
              onClick={() => setEdited(s)}
            >
              {t("Edit")}
            </Button>
          ) : null}
          {s.permissions.includes("DELETE") ? (
            <Button
              variant="subtle"
              color="red"
              size="compact-xs"
              aria-label={t("Remove {{name}}", { name: s.name })}
              onClick={() => {
                remove.clear();
                setDeleting(s);
              }}
            >
              {t("Remove")}
            </Button>
          ) : null}
        </span>
      ),
    },
  ];
  return (
    <>
      <div className="page-head">
        <div className="row">
          <Link to="/data" search={{}} className="prose">
            {t("Data")}
          </Link>
          <span className="dim" aria-hidden="true">
            /
          </span>
          <h1>{t("Object storages")}</h1>
        </div>
        <span className="dim">{t("S3 buckets to import from and export to")}</span>
        <Button className="push" variant="default" onClick={() => setEdited("new")}>
          {t("New object storage")}
        </Button>
      </div>
      <FailureNote failure={list.failure} />
      {!list.loading && !list.failure && list.rows.length === 0 ? (
        <div className="panel">
          <Empty
            title={t("No object storages")}
            cli="berth objectstorage add lake --endpoint https://s3.example.org --bucket lake --access-key KEY"
          >
            <span>
              {t("Add an S3 bucket. Then you can import its objects into a folder, or export files from a folder.")}
            </span>
            <Button variant="light" onClick={() => setEdited("new")}>
              {t("Add the first object storage")}
            </Button>
            <span>{t("or from a terminal:")}</span>
          </Empty>
        </div>
      ) : null}
      {list.rows.length > 0 ? <Table label={t("Object storages")} rows={list.rows} columns={columns} /> : null}
      {list.more ? (
        <div className="row" style={{ justifyContent: "center" }}>
          <Button variant="default" loading={list.loading} onClick={list.more}>
            {t("Show more")}
          </Button>
        </div>
      ) : null}
      {edited ? (
        <StorageDialog
          storage={edited === "new" ? null : edited}
          onClose={() => setEdited(null)}
          onDone={list.reload}
        />
      ) : null}
      <Modal
        opened={browsed !== null}
        onClose={() => setBrowsed(null)}
        size="lg"
        title={t("Contents of {{name}}", { name: browsed?.name ?? "" })}
        closeButtonProps={{ "aria-label": t("Close") }}
      >
        {browsed ? <ObjectBrowser storage={browsed} path={path} onOpen={setPath} /> : null}
      </Modal>
      <Confirm
        opened={deleting !== null}
        title={t("Remove {{name}}?", { name: deleting?.name ?? "" })}
        action={t("Remove")}
        busy={remove.busy}
        failure={remove.failure}
        onClose={() => setDeleting(null)}
        onConfirm={() => void confirmed()}
      >
        {t("The bucket keeps its contents. The platform can no longer access it.")}
      </Confirm>
    </>
  );
}
