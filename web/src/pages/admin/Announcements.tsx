import { Button, Checkbox, Select, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql, type ResultOf } from "../../api/graphql";
import { FormDialog } from "../../components/admin/Form";
import { isSuper } from "../../components/admin/nav";
import { type Column, PagedTable } from "../../components/admin/Table";
import { nodesOf, usePages } from "../../components/admin/usePages";
import { Confirm } from "../../components/Confirm";
import { when } from "../../components/format";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { word } from "../../words";

const AnnouncementsQuery = graphql(`
  query Announcements($first: Int, $after: Cursor) {
    announcements(first: $first, after: $after, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
      totalCount
      pageInfo { hasNextPage endCursor }
      edges { node { id text severity audience scopeID dismissable startsAt endsAt } }
    }
  }
`);
const ScopesQuery = graphql(`
  query AnnouncementScopes { domains(first: 200) { edges { node { id name } } } projects(first: 500) { edges { node { id name } } } }
`);
const Create = graphql(`
  mutation CreateAnnouncement($input: CreateAnnouncementInput!) { createAnnouncement(input: $input) { announcement { id } } }
`);
const Delete = graphql(`
  mutation DeleteAnnouncement($input: DeleteAnnouncementInput!) { deleteAnnouncement(input: $input) { id } }
`);

type Edge = NonNullable<NonNullable<ResultOf<typeof AnnouncementsQuery>["announcements"]["edges"]>[number]>;
type Announcement = NonNullable<Edge["node"]>;
const severities = ["INFO", "WARNING", "ERROR"] as const;
const audiences = ["EVERYONE", "DOMAIN", "PROJECT", "ADMINS"] as const;

/** The texts that people see on top of every page. */
export function Announcements() {
  const list = usePages({ query: AnnouncementsQuery, variables: {}, pick: (data) => data.announcements });
  const remove = useAction(Delete);
  const can = isSuper(useViewer());
  const [adding, setAdding] = useState(false);
  const [deleting, setDeleting] = useState<Announcement | null>(null);
  const columns: Column<Announcement>[] = [
    { head: t("Text"), cell: (a) => a.text },
    { head: t("Severity"), cell: (a) => word("NoticeSeverity", a.severity) },
    { head: t("Audience"), cell: (a) => word("AnnouncementAudience", a.audience) },
    { head: t("From"), wide: true, cell: (a) => when(a.startsAt) },
    { head: t("Until"), wide: true, cell: (a) => (a.endsAt ? when(a.endsAt) : t("deleted")) },
    {
      head: t("Actions"),
      num: true,
      cell: (a) =>
        can ? (
          <Button
            variant="subtle"
            color="red"
            size="compact-xs"
            onClick={() => {
              remove.clear();
              setDeleting(a);
            }}
          >
            {t("Delete")}
          </Button>
        ) : null,
    },
  ];
  return (
    <>
      <div className="page-head">
        <h1>{t("Announcements")}</h1>
        <span className="dim">{t("Texts on top of every page")}</span>
        {can ? (
          <Button className="push" onClick={() => setAdding(true)}>
            {t("New announcement")}
          </Button>
        ) : null}
      </div>
      <PagedTable label={t("Announcements")} pages={list} columns={columns} empty={t("No announcements")} />
      {adding ? <NewAnnouncement onClose={() => setAdding(false)} onDone={list.reload} /> : null}
      <Confirm
        opened={deleting !== null}
        title={t("Delete the announcement?")}
        action={t("Delete")}
        busy={remove.busy}
        failure={remove.failure}
        onClose={() => setDeleting(null)}
        onConfirm={async () => {
          if (!deleting || !(await remove.run({ input: { id: deleting.id } }))) return;
          setDeleting(null);
          list.reload();
        }}
      >
        {t("It is no longer shown to anyone.")}
      </Confirm>
    </>
  );
}

function NewAnnouncement({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const create = useAction(Create);
  const { data } = useLiveQuery({ query: ScopesQuery });
  const [text, setText] = useState("");
  const [severity, setSeverity] = useState<(typeof severities)[number]>("INFO");
  const [audience, setAudience] = useState<(typeof audiences)[number]>("EVERYONE");
  const [scope, setScope] = useState<string | null>(null);
  const [from, setFrom] = useState("");
  const [until, setUntil] = useState("");
  const [dismissable, setDismissable] = useState(true);
  const scoped = audience === "DOMAIN" || audience === "PROJECT";
  const scopes = nodesOf(audience === "DOMAIN" ? data?.domains : data?.projects);

  async function submit() {
    const done = await create.run({
      input: {
        text,
        severity,
        audience,
        dismissable,
        ...(scoped && scope ? { scopeID: scope } : {}),
        ...(from ? { startsAt: new Date(from).toISOString() } : {}),
        ...(until ? { endsAt: new Date(until).toISOString() } : {}),
      },
    });
    if (!done) return;
    onDone();
    onClose();
  }
  return (
    <FormDialog
      title={t("New announcement")}
      submit={t("Create")}
      fields={["text", "severity", "audience", "scopeID", "startsAt", "endsAt"]}
      busy={create.busy}
      failure={create.failure}
      disabled={!text.trim() || (scoped && !scope)}
      onClose={onClose}
      onSubmit={() => void submit()}
    >
      {(wrong) => (
        <>
          <Textarea
            label={t("Text")}
            description={t("Markdown, at most 4000 characters")}
            required
            data-autofocus
            autosize
            minRows={3}
            maxRows={12}
            maxLength={4000}
            value={text}
            error={wrong.text}
            onChange={(e) => setText(e.currentTarget.value)}
          />
          <Select
            label={t("Severity")}
            allowDeselect={false}
            value={severity}
            onChange={(value) => setSeverity(severities.find((s) => s === value) ?? "INFO")}
            data={severities.map((value) => ({ value, label: word("NoticeSeverity", value) }))}
          />
          <Select
            label={t("Audience")}
            allowDeselect={false}
            value={audience}
            onChange={(value) => {
              setAudience(audiences.find((a) => a === value) ?? "EVERYONE");
              setScope(null);
            }}
            data={audiences.map((value) => ({ value, label: word("AnnouncementAudience", value) }))}
          />
          {scoped ? (
            <Select
              label={audience === "DOMAIN" ? t("Domain") : t("Project")}
              required
              searchable
              value={scope}
              error={wrong.scopeID}
              onChange={setScope}
              data={scopes.map((s) => ({ value: s.id, label: s.name }))}
            />
          ) : null}
          <TextInput
            type="datetime-local"
            label={t("From")}
            description={t("Leave empty for now")}
            value={from}
            error={wrong.startsAt}
            onChange={(e) => setFrom(e.currentTarget.value)}
          />
          <TextInput
            type="datetime-local"
            label={t("Until")}
            description={t("Leave empty to show it until it is deleted")}
            value={until}
            error={wrong.endsAt}
            onChange={(e) => setUntil(e.currentTarget.value)}
          />
          <Checkbox
            label={t("People can hide it")}
            checked={dismissable}
            onChange={(e) => setDismissable(e.currentTarget.checked)}
          />
        </>
      )}
    </FormDialog>
  );
}
