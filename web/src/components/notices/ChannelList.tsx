import { Button, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { word } from "../../words";
import { Secret } from "../account/Secret";
import { FormDialog } from "../admin/Form";
import { type Column, Table } from "../admin/Table";
import { Confirm } from "../Confirm";
import { when } from "../format";
import { Empty, FailureNote } from "../Note";
import { Status } from "../Status";
import { type Channel, ChannelsQuery, CreateChannel, DeleteChannel, TestChannel, UpdateChannel } from "./notice";

/** Webhooks of the viewer or of the cluster: create, test, disable and delete them. */
export function ChannelList({ cluster, can }: { cluster: boolean; can: boolean }) {
  const { data, failure, refetch } = useLiveQuery({
    query: ChannelsQuery,
    variables: { cluster },
    requestPolicy: "cache-and-network",
  });
  const update = useAction(UpdateChannel, true);
  const remove = useAction(DeleteChannel);
  const test = useAction(TestChannel, true);
  const [adding, setAdding] = useState(false);
  const [secret, setSecret] = useState<{ name: string; value: string } | null>(null);
  const [deleting, setDeleting] = useState<Channel | null>(null);
  const rows = data?.noticeChannels ?? [];

  async function check(c: Channel) {
    const out = await test.run({ input: { id: c.id } });
    if (!out) return;
    const { delivered, message } = out.testNoticeChannel;
    toast({
      text: delivered
        ? t("{{name}} received the test.", { name: c.name })
        : t("{{name}} did not receive the test: {{message}}.", { name: c.name, message }),
    });
  }
  const columns: Column<Channel>[] = [
    { head: t("Name"), cell: (c) => <b>{c.name}</b> },
    { head: t("Type"), cell: (c) => word("NoticeRoute", c.type) },
    { head: t("Host"), wide: true, cell: (c) => <code>{c.host}</code> },
    {
      head: t("Status"),
      cell: (c) => (
        <>
          <Status status={c.enabled ? "ACTIVE" : "DISABLED"} />
          {c.disabledReason ? <div className="dim">{c.disabledReason}</div> : null}
          {c.failingSince ? (
            <div className="dim">{t("Failing since {{time}}", { time: when(c.failingSince) })}</div>
          ) : null}
        </>
      ),
    },
  ];
  const actions: Column<Channel> = {
    head: t("Actions"),
    num: true,
    cell: (c) => (
      <span className="nowrap">
        <Button
          variant="subtle"
          size="compact-xs"
          aria-label={t("Test {{name}}", { name: c.name })}
          onClick={() => void check(c)}
        >
          {t("Test")}
        </Button>
        <Button
          variant="subtle"
          size="compact-xs"
          aria-label={c.enabled ? t("Disable {{name}}", { name: c.name }) : t("Enable {{name}}", { name: c.name })}
          onClick={() => void update.run({ input: { id: c.id, enabled: !c.enabled } })}
        >
          {c.enabled ? t("Disable") : t("Enable")}
        </Button>
        <Button
          variant="subtle"
          color="red"
          size="compact-xs"
          aria-label={t("Delete {{name}}", { name: c.name })}
          onClick={() => {
            remove.clear();
            setDeleting(c);
          }}
        >
          {t("Delete")}
        </Button>
      </span>
    ),
  };
  return (
    <section className="stack" aria-label={t("Channels")}>
      <div className="row">
        <h2>{t("Channels")}</h2>
        {can ? (
          <Button className="push" variant="default" onClick={() => setAdding(true)}>
            {t("New channel")}
          </Button>
        ) : null}
      </div>
      {secret ? (
        <Secret
          title={t("Secret of {{name}}", { name: secret.name })}
          values={[{ label: t("Secret"), value: secret.value }]}
          onClose={() => setSecret(null)}
        >
          <p>{t("It signs the requests, so that the receiver can check that they come from Berth.")}</p>
        </Secret>
      ) : null}
      <FailureNote failure={failure} />
      {data && rows.length === 0 ? (
        <div className="panel">
          <Empty title={t("No channels")}>
            <span>{t("A channel sends notices to a program of yours, or to a chat such as Slack.")}</span>
          </Empty>
        </div>
      ) : null}
      {rows.length > 0 ? (
        <Table label={t("Channels")} rows={rows} columns={can ? [...columns, actions] : columns} />
      ) : null}
      {adding ? (
        <NewChannel
          cluster={cluster}
          onClose={() => setAdding(false)}
          onDone={(name, value) => {
            setSecret(value ? { name, value } : null);
            refetch();
          }}
        />
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
          setDeleting(null);
          refetch();
        }}
      >
        {t("Notices that wait for it are not sent.")}
      </Confirm>
    </section>
  );
}

interface NewProps {
  cluster: boolean;
  onClose: () => void;
  onDone: (name: string, secret: string | null) => void;
}

function NewChannel({ cluster, onClose, onDone }: NewProps) {
  const [type, setType] = useState<"WEBHOOK" | "SLACK">("WEBHOOK");
  const [name, setName] = useState("");
  const [url, setUrl] = useState("");
  const create = useAction(CreateChannel);
  async function submit() {
    const done = await create.run({ input: { type, name: name.trim(), url: url.trim(), cluster } });
    if (!done) return;
    onDone(name.trim(), done.createNoticeChannel.secret);
    onClose();
  }
  return (
    <FormDialog
      title={t("New channel")}
      submit={t("Create")}
      fields={["type", "name", "url"]}
      busy={create.busy}
      failure={create.failure}
      disabled={!name.trim() || !url.trim()}
      onClose={onClose}
      onSubmit={() => void submit()}
    >
      {(wrong) => (
        <>
          <Select
            label={t("Type")}
            allowDeselect={false}
            value={type}
            error={wrong.type}
            onChange={(value) => setType(value === "SLACK" ? "SLACK" : "WEBHOOK")}
            data={[
              { value: "WEBHOOK", label: t("Webhook: signed JSON") },
              { value: "SLACK", label: t("Slack, or a chat with the same webhooks") },
            ]}
          />
          <TextInput
            label={t("Name")}
            required
            data-autofocus
            maxLength={64}
            value={name}
            error={wrong.name}
            onChange={(e) => setName(e.currentTarget.value)}
          />
          <TextInput
            label={t("Address")}
            description={t("It must begin with https://. Only its host is shown later.")}
            required
            value={url}
            error={wrong.url}
            onChange={(e) => setUrl(e.currentTarget.value)}
          />
        </>
      )}
    </FormDialog>
  );
}
