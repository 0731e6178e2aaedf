import { Button, TextInput } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { graphql, type ResultOf } from "../../api/graphql";
import { FilterBox } from "../../components/admin/Filter";
import { FormDialog } from "../../components/admin/Form";
import { hasPermission, isSuper } from "../../components/admin/nav";
import { PolicyPick } from "../../components/admin/Pickers";
import { DomainPanel } from "../../components/admin/people/DomainPanel";
import { signUps } from "../../components/admin/people/DomainRules";
import { type Column, PagedTable, RowButton } from "../../components/admin/Table";
import { usePages } from "../../components/admin/usePages";
import { slotsLine } from "../../components/format";
import { Status } from "../../components/Status";
import { useAction } from "../../hooks/useAction";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";

const DomainRow = graphql(`
  fragment DomainRow on Domain {
    id name description active occupied permissions totpRequired passwordMinLength signUp
    policies { id policy { id name } }
    users(first: 1, where: { statusIn: [ACTIVE, INACTIVE, BEFORE_VERIFICATION] }) { totalCount }
    projects(first: 1) { totalCount }
  }
`);
type Row = ResultOf<typeof DomainRow>;
const DomainsQuery = graphql(
  `
  query Domains($where: DomainWhereInput, $first: Int, $after: Cursor) {
    domains(first: $first, after: $after, where: $where, orderBy: [{ field: NAME, direction: ASC }]) {
      totalCount pageInfo { hasNextPage endCursor } edges { node { ...DomainRow } }
    }
  }
`,
  [DomainRow],
);
const CreateDomain = graphql(
  `mutation CreateDomain($input: CreateDomainInput!) { createDomain(input: $input) { domain { id } } }`,
);

/** Lists the domains, the top units of ownership and limits. */
export function Domains() {
  const viewer = useViewer();
  const makes = isSuper(viewer) || hasPermission(viewer, "CREATE", "DOMAIN");
  const { open } = useSearch({ from: "/frame/admin/domains" });
  const navigate = useNavigate({ from: "/admin/domains" });
  const show = (id: string | undefined) => void navigate({ search: { open: id }, replace: true });
  const [q, setQ] = useState("");
  const [creating, create] = useState(false);
  const pages = usePages({
    query: DomainsQuery,
    variables: { where: q ? { nameContainsFold: q } : null },
    pick: (data) => data.domains,
  });
  const columns: Column<Row>[] = [
    { head: t("Domain"), cell: (d) => <RowButton onOpen={() => show(d.id)}>{d.name}</RowButton> },
    { head: t("Status"), cell: (d) => <Status status={d.active ? "ACTIVE" : "INACTIVE"} /> },
    { head: t("Users"), num: true, cell: (d) => d.users.totalCount },
    { head: t("Projects"), num: true, cell: (d) => d.projects.totalCount },
    { head: t("Who can sign up"), wide: true, cell: (d) => t(signUps[d.signUp]) },
    { head: t("Two-step login"), wide: true, cell: (d) => (d.totpRequired ? t("required") : t("optional")) },
    {
      head: t("Policy"),
      wide: true,
      cell: (d) => <span className="dim">{[...new Set(d.policies.map((a) => a.policy.name))].join(", ")}</span>,
    },
    {
      head: t("Resources in use"),
      wide: true,
      cell: (d) => <span className="dim nowrap">{slotsLine(d.occupied)}</span>,
    },
  ];
  return (
    <>
      <div className="page-head">
        <h1>{t("Domains")}</h1>
        <span className="dim" role="status">
          {pages.total === null ? "" : pages.total}
        </span>
        {makes ? (
          <Button className="push" onClick={() => create(true)}>
            {t("New domain")}
          </Button>
        ) : null}
      </div>
      <div className="row">
        <FilterBox label={t("Filter by name")} value={q} onChange={setQ} />
      </div>
      <PagedTable
        label={t("Domains")}
        pages={pages}
        columns={columns}
        selected={open}
        empty={q ? t("No domain matches") : t("No domains")}
      />
      {open ? (
        <DomainPanel
          key={open}
          id={open}
          onClose={() => show(undefined)}
          onGone={() => {
            show(undefined);
            pages.reload();
          }}
        />
      ) : null}
      {creating ? (
        <Create
          onClose={() => create(false)}
          onDone={(id) => {
            pages.reload();
            show(id);
          }}
        />
      ) : null}
    </>
  );
}

function Create({ onClose, onDone }: { onClose: () => void; onDone: (id: string) => void }) {
  const { run, busy, failure } = useAction(CreateDomain);
  const [draft, setDraft] = useState({ name: "", description: "", policy: null as string | null });
  const set = (more: Partial<typeof draft>) => setDraft({ ...draft, ...more });
  return (
    <FormDialog
      title={t("New domain")}
      submit={t("Create")}
      fields={["name", "description", "policy"]}
      busy={busy}
      failure={failure}
      disabled={!draft.name.trim()}
      onClose={onClose}
      onSubmit={async () => {
        const done = await run({ input: draft });
        if (!done) return;
        onClose();
        onDone(done.createDomain.domain.id);
      }}
    >
      {(wrong) => (
        <>
          <TextInput
            label={t("Name")}
            required
            data-autofocus
            value={draft.name}
            error={wrong.name}
            onChange={(e) => set({ name: e.currentTarget.value })}
          />
          <TextInput
            label={t("Description")}
            value={draft.description}
            error={wrong.description}
            onChange={(e) => set({ description: e.currentTarget.value })}
          />
          <PolicyPick
            label={t("Policy")}
            description={t("Limits for all users of the domain together, such as the resources in use at once.")}
            placeholder={t("none")}
            value={draft.policy}
            error={wrong.policy}
            onChange={(policy) => set({ policy })}
          />
        </>
      )}
    </FormDialog>
  );
}
