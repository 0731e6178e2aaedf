import { Button } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { graphql, type ResultOf } from "../../api/graphql";
import { FilterBox, FilterSelect } from "../../components/admin/Filter";
import { canReadAll, hasPermission, hasRoleFor } from "../../components/admin/nav";
import { DomainPick } from "../../components/admin/Pickers";
import { CreateProject } from "../../components/admin/people/CreateProject";
import { ProjectPanel } from "../../components/admin/people/ProjectPanel";
import { type ProjectType, projectTypes } from "../../components/admin/people/projecttype";
import { type Column, PagedTable, RowButton } from "../../components/admin/Table";
import { usePages } from "../../components/admin/usePages";
import { slotsLine, when } from "../../components/format";
import { Status } from "../../components/Status";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { administers, useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { stateWord } from "../../words";

const ProjectRow = graphql(`
  fragment ProjectRow on Project {
    id name description active type createdAt occupied permissions domain { id name } policies { id policy { id name } }
  }
`);
type Row = ResultOf<typeof ProjectRow>;
const ProjectsQuery = graphql(
  `
  query Projects($where: ProjectWhereInput, $domain: ID!, $inDomain: Boolean!, $first: Int, $after: Cursor) {
    projects(first: $first, after: $after, where: $where, orderBy: [{ field: NAME, direction: ASC }]) @skip(if: $inDomain) {
      totalCount pageInfo { hasNextPage endCursor } edges { node { ...ProjectRow } }
    }
    node(id: $domain) @include(if: $inDomain) {
      id
      ... on Domain {
        name
        projects(first: $first, after: $after, where: $where, orderBy: [{ field: NAME, direction: ASC }]) {
          totalCount pageInfo { hasNextPage endCursor } edges { node { ...ProjectRow } }
        }
      }
    }
  }
`,
  [ProjectRow],
);
const DomainNameQuery = graphql(`query DomainName($id: ID!) { node(id: $id) { id ... on Domain { name } } }`);

/** Lists the projects that the viewer can see, with the actions that they can use. */
export function Projects() {
  const viewer = useViewer();
  const { open, domain } = useSearch({ from: "/frame/admin/projects" });
  const navigate = useNavigate({ from: "/admin/projects" });
  const show = (more: { open?: string; domain?: string }) =>
    void navigate({ search: (old) => ({ ...old, ...more }), replace: true });
  const [q, setQ] = useState("");
  const [type, setType] = useState<ProjectType>();
  const [active, setActive] = useState<string>();
  const [creating, create] = useState(false);
  const where = {
    ...(q ? { nameContainsFold: q } : {}),
    ...(type ? { type } : {}),
    ...(active ? { active: active === "active" } : {}),
  };
  const pages = usePages({
    query: ProjectsQuery,
    variables: { where, domain: domain ?? viewer.user.domain.id, inDomain: domain !== undefined },
    pick: (data) => data.projects ?? (data.node && "projects" in data.node ? data.node.projects : null),
  });
  const named = useLiveQuery({ query: DomainNameQuery, variables: { id: domain ?? "" }, pause: !domain });
  const chosen = domain
    ? { value: domain, label: named.data?.node && "name" in named.data.node ? named.data.node.name : "" }
    : null;
  const many = canReadAll(viewer) || hasRoleFor(viewer, "DOMAIN");
  const makes = administers(viewer) || hasPermission(viewer, "CREATE", "PROJECT");
  const columns: Column<Row>[] = [
    { head: t("Project"), cell: (p) => <RowButton onOpen={() => show({ open: p.id })}>{p.name}</RowButton> },
    ...(many ? [{ head: t("Domain"), cell: (p: Row) => p.domain.name }] : []),
    { head: t("Type"), cell: (p) => t(projectTypes[p.type]) },
    { head: t("Status"), cell: (p) => <Status status={p.active ? "ACTIVE" : "INACTIVE"} /> },
    {
      head: t("Policy"),
      wide: true,
      cell: (p) => <span className="dim">{[...new Set(p.policies.map((a) => a.policy.name))].join(", ")}</span>,
    },
    {
      head: t("Resources in use"),
      wide: true,
      cell: (p) => <span className="dim nowrap">{slotsLine(p.occupied)}</span>,
    },
    { head: t("Created"), wide: true, cell: (p) => <span className="dim nowrap">{when(p.createdAt)}</span> },
  ];
  const narrowed = q || type || active || domain;
  return (
    <>
      <div className="page-head">
        <h1>{t("Projects")}</h1>
        <span className="dim" role="status">
          {pages.total === null ? "" : pages.total}
        </span>
        {makes ? (
          <Button className="push" onClick={() => create(true)}>
            {t("New project")}
          </Button>
        ) : null}
      </div>
      <div className="row">
        <FilterBox label={t("Filter by name")} value={q} onChange={setQ} />
        {many ? (
          <DomainPick
            key={chosen?.label}
            bare
            label={t("Domain")}
            placeholder={t("All domains")}
            w={160}
            value={domain ?? null}
            chosen={chosen}
            onChange={(id) => show({ domain: id ?? undefined })}
          />
        ) : null}
        <FilterSelect
          label={t("Type")}
          any={t("All types")}
          value={type}
          onChange={(v) => setType(v as ProjectType)}
          options={Object.entries(projectTypes).map(([value, label]) => ({ value, label: t(label) }))}
        />
        <FilterSelect
          label={t("Status")}
          any={t("Any status")}
          value={active}
          onChange={setActive}
          options={[
            { value: "active", label: stateWord("ACTIVE") },
            { value: "inactive", label: stateWord("INACTIVE") },
          ]}
        />
      </div>
      <PagedTable
        label={t("Projects")}
        pages={pages}
        columns={columns}
        selected={open}
        empty={narrowed ? t("No project matches") : t("No projects")}
      />
      {open ? (
        <ProjectPanel
          key={open}
          id={open}
          onClose={() => show({ open: undefined })}
          onGone={() => {
            show({ open: undefined });
            pages.reload();
          }}
        />
      ) : null}
      {creating ? (
        <CreateProject
          domain={domain ?? viewer.user.domain.id}
          onClose={() => create(false)}
          onDone={(id) => {
            pages.reload();
            show({ open: id });
          }}
        />
      ) : null}
    </>
  );
}
