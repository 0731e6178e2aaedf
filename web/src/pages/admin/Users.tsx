import { Button } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { FilterBox, FilterSelect } from "../../components/admin/Filter";
import { canReadAll, hasPermission, hasRoleFor } from "../../components/admin/nav";
import { DomainPick, ProjectPick } from "../../components/admin/Pickers";
import { CreateUser } from "../../components/admin/people/CreateUser";
import { type People, type UserRow, UsersQuery, whereOf } from "../../components/admin/people/filter";
import { Import } from "../../components/admin/people/Import";
import { roleNames } from "../../components/admin/people/rights";
import { UserPanel } from "../../components/admin/people/UserPanel";
import { type Column, PagedTable, RowButton } from "../../components/admin/Table";
import { usePages } from "../../components/admin/usePages";
import { when } from "../../components/format";
import { Status } from "../../components/Status";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { administers, useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { stateWord } from "../../words";

const NamesQuery = graphql(`
  query FilterNames($ids: [ID!]!) { nodes(ids: $ids) { id ... on Domain { name } ... on Project { name } } }
`);

/** Lists the users that the viewer can see, with the actions that they can use. */
export function Users() {
  const viewer = useViewer();
  const filter = useSearch({ from: "/frame/admin/users" });
  const navigate = useNavigate({ from: "/admin/users" });
  const narrow = (more: People) => void navigate({ search: (old) => ({ ...old, ...more }), replace: true });
  const [creating, create] = useState(false);

  const where = whereOf(filter);
  // A project belongs to a domain, so the domain filter is not needed.
  const domain = filter.project ? undefined : filter.domain;
  const pages = usePages({
    query: UsersQuery,
    variables: { where, domain: domain ?? viewer.user.domain.id, inDomain: domain !== undefined },
    pick: (data) => data.users ?? (data.node && "users" in data.node ? data.node.users : null),
  });
  const names = useLiveQuery({
    query: NamesQuery,
    variables: { ids: [filter.domain, filter.project].filter((id): id is string => Boolean(id)) },
    pause: !filter.domain && !filter.project,
  });
  const chosen = (id: string | undefined) => {
    const found = (names.data?.nodes ?? []).find((n) => n?.id === id);
    return id ? { value: id, label: found && "name" in found ? found.name : "" } : null;
  };
  const adds = administers(viewer) || hasPermission(viewer, "CREATE", "USER");
  const many = canReadAll(viewer) || hasRoleFor(viewer, "DOMAIN");

  if (filter.view === "import" && adds) {
    return (
      <Import
        onClose={() => {
          narrow({ view: undefined });
          pages.reload();
        }}
      />
    );
  }
  const columns: Column<UserRow>[] = [
    { head: t("E-mail"), cell: (u) => <RowButton onOpen={() => narrow({ open: u.id })}>{u.email}</RowButton> },
    { head: t("Name"), wide: true, cell: (u) => <span className="clip">{u.fullName || u.username}</span> },
    ...(many ? [{ head: t("Domain"), cell: (u: UserRow) => u.domain.name }] : []),
    { head: t("Role"), cell: (u) => t(roleNames[u.role]) },
    { head: t("Status"), cell: (u) => <Status status={u.status} /> },
    {
      head: t("Policy"),
      wide: true,
      cell: (u) => <span className="dim">{[...new Set(u.policies.map((p) => p.policy.name))].join(", ")}</span>,
    },
    {
      head: t("Last login"),
      wide: true,
      cell: (u) => <span className="dim nowrap">{u.lastLoginAt ? when(u.lastLoginAt) : t("never")}</span>,
    },
  ];
  const narrowed = filter.q || filter.domain || filter.project || filter.role || filter.status;
  return (
    <>
      <div className="page-head">
        <h1>{t("Users")}</h1>
        <span className="dim" role="status">
          {pages.total === null ? "" : pages.total}
        </span>
        {adds ? (
          <div className="push row">
            <Button variant="default" onClick={() => narrow({ view: "import", open: undefined })}>
              {t("Import CSV")}
            </Button>
            <Button onClick={() => create(true)}>{t("New user")}</Button>
          </div>
        ) : null}
      </div>
      <div className="row">
        <FilterBox
          label={t("Filter by e-mail or name")}
          value={filter.q ?? ""}
          onChange={(q) => narrow({ q: q || undefined })}
        />
        {many ? (
          <DomainPick
            key={`d ${chosen(filter.domain)?.label}`}
            bare
            label={t("Domain")}
            placeholder={t("All domains")}
            w={160}
            value={filter.domain ?? null}
            chosen={chosen(filter.domain)}
            onChange={(id) => narrow({ domain: id ?? undefined, project: undefined })}
          />
        ) : null}
        <ProjectPick
          key={`p ${filter.domain} ${chosen(filter.project)?.label}`}
          bare
          label={t("Project")}
          placeholder={t("All projects")}
          w={160}
          domain={filter.domain}
          value={filter.project ?? null}
          chosen={chosen(filter.project)}
          onChange={(id) => narrow({ project: id ?? undefined })}
        />
        <FilterSelect
          label={t("Role")}
          any={t("All roles")}
          value={filter.role}
          onChange={(role) => narrow({ role: role as People["role"] })}
          options={Object.entries(roleNames).map(([value, label]) => ({ value, label: t(label) }))}
        />
        <FilterSelect
          label={t("Status")}
          any={t("All except deleted")}
          value={filter.status}
          onChange={(status) => narrow({ status: status as People["status"] })}
          options={[
            { value: "ACTIVE", label: stateWord("ACTIVE") },
            { value: "INACTIVE", label: stateWord("INACTIVE") },
            { value: "BEFORE_VERIFICATION", label: stateWord("BEFORE_VERIFICATION") },
            { value: "DELETED", label: stateWord("DELETED") },
          ]}
        />
      </div>
      <PagedTable
        label={t("Users")}
        pages={pages}
        columns={columns}
        selected={filter.open}
        empty={narrowed ? t("No user matches") : t("No users")}
      />
      {filter.open ? (
        <UserPanel
          key={filter.open}
          id={filter.open}
          onClose={() => narrow({ open: undefined })}
          onMoved={pages.reload}
        />
      ) : null}
      {creating ? (
        <CreateUser
          domain={filter.domain ?? viewer.user.domain.id}
          onClose={() => create(false)}
          onDone={pages.reload}
        />
      ) : null}
    </>
  );
}
