import { Button } from "@mantine/core";
import { useState } from "react";
import { isSuper } from "../../components/admin/nav";
import { type Column, Table } from "../../components/admin/Table";
import { usePages } from "../../components/admin/usePages";
import { Confirm } from "../../components/Confirm";
import { EndpointDialog } from "../../components/chat/EndpointDialog";
import { DeleteEndpoint, type Endpoint, EndpointsQuery, UpdateEndpoint } from "../../components/chat/endpoint";
import { Empty, FailureNote } from "../../components/Note";
import { Status } from "../../components/Status";
import { useAction } from "../../hooks/useAction";
import { toast } from "../../hooks/useToasts";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";

/** Lists the addresses outside the cluster that chats can use. */
export function ChatEndpoints() {
  const list = usePages({ query: EndpointsQuery, variables: {}, pick: (data) => data.chatEndpoints });
  const update = useAction(UpdateEndpoint, true);
  const remove = useAction(DeleteEndpoint);
  const can = isSuper(useViewer());
  const [edited, edit] = useState<Endpoint | "new" | null>(null);
  const [deleting, setDeleting] = useState<Endpoint | null>(null);
  const columns: Column<Endpoint>[] = [
    { head: t("Name"), cell: (e) => <b className="nowrap">{e.name}</b> },
    { head: t("Status"), cell: (e) => <Status status={e.enabled ? "ACTIVE" : "DISABLED"} /> },
    {
      head: t("Address"),
      cell: (e) => (
        <>
          {e.url ? <code>{e.url}</code> : <span className="dim">{t("hidden")}</span>}
          <div className="dim">{e.hasKey ? t("with a key") : t("without a key")}</div>
        </>
      ),
    },
    { head: t("Models"), cell: (e) => e.models.join(", ") },
    {
      head: t("Available to"),
      wide: true,
      cell: (e) => (e.domains.length > 0 ? e.domains.map((d) => d.name).join(", ") : t("all domains")),
    },
  ];
  const actions: Column<Endpoint> = {
    head: t("Actions"),
    num: true,
    cell: (e) => (
      <span className="nowrap">
        <Button
          variant="subtle"
          size="compact-xs"
          aria-label={e.enabled ? t("Disable {{name}}", { name: e.name }) : t("Enable {{name}}", { name: e.name })}
          onClick={() => void update.run({ input: { id: e.id, enabled: !e.enabled } })}
        >
          {e.enabled ? t("Disable") : t("Enable")}
        </Button>
        <Button
          variant="subtle"
          size="compact-xs"
          aria-label={t("Edit {{name}}", { name: e.name })}
          onClick={() => edit(e)}
        >
          {t("Edit")}
        </Button>
        <Button
          variant="subtle"
          color="red"
          size="compact-xs"
          aria-label={t("Delete {{name}}", { name: e.name })}
          onClick={() => {
            remove.clear();
            setDeleting(e);
          }}
        >
          {t("Delete")}
        </Button>
      </span>
    ),
  };
  return (
    <>
      <div className="page-head">
        <h1>{t("Chat endpoints")}</h1>
        <span className="dim">{t("Models outside the cluster")}</span>
        {can ? (
          <Button className="push" onClick={() => edit("new")}>
            {t("New endpoint")}
          </Button>
        ) : null}
      </div>
      <FailureNote failure={list.failure} />
      {!list.loading && !list.failure && list.rows.length === 0 ? (
        <div className="panel">
          <Empty title={t("No endpoints")}>
            <span>
              {t("With an endpoint, users can chat with models of an address that speaks the API of OpenAI.")}
            </span>
            <span>{t("Prompts, files and answers of these chats leave the cluster.")}</span>
          </Empty>
        </div>
      ) : null}
      {list.rows.length > 0 ? (
        <Table label={t("Chat endpoints")} rows={list.rows} columns={can ? [...columns, actions] : columns} />
      ) : null}
      {list.more ? (
        <div className="row" style={{ justifyContent: "center" }}>
          <Button variant="default" loading={list.loading} onClick={list.more}>
            {t("Show more")}
          </Button>
        </div>
      ) : null}
      {edited ? (
        <EndpointDialog endpoint={edited === "new" ? null : edited} onClose={() => edit(null)} onDone={list.reload} />
      ) : null}
      <Confirm
        opened={deleting !== null}
        title={t("Delete {{name}}?", { name: deleting?.name ?? "" })}
        action={t("Delete")}
        busy={remove.busy}
        failure={remove.failure}
        onClose={() => setDeleting(null)}
        onConfirm={async () => {
          if (!deleting || !(await remove.run({ input: { id: deleting.id } }))) return;
          toast({ text: t("{{name}} was deleted.", { name: deleting.name }) });
          setDeleting(null);
          list.reload();
        }}
      >
        {t("Chats keep the answers of its models, but can no longer ask them. Its key is deleted.")}
      </Confirm>
    </>
  );
}
