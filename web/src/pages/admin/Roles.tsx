import { Button } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { FilterBox } from "../../components/admin/Filter";
import { RoleDialog } from "../../components/admin/rules/RoleDialog";
import { RolePanel } from "../../components/admin/rules/RolePanel";
import { canCreate } from "../../components/admin/rules/rights";
import { brief, type Role, RoleFields } from "../../components/admin/rules/role";
import { entityName } from "../../components/admin/rules/TrailFilters";
import { type Column, PagedTable, RowButton } from "../../components/admin/Table";
import "../../components/admin/rules/rules.css";
import { usePages } from "../../components/admin/usePages";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { word } from "../../words";

const RolesQuery = graphql(
  `
  query Roles($where: RoleWhereInput, $first: Int, $after: Cursor) {
    roles(first: $first, after: $after, where: $where, orderBy: [{ field: NAME, direction: ASC }]) {
      totalCount pageInfo { hasNextPage endCursor } edges { node { ...RoleFields } }
    }
  }
`,
  [RoleFields],
);

export function Roles() {
  const viewer = useViewer();
  const [q, setQ] = useState("");
  const [open, setOpen] = useState<string | null>(null);
  const [edited, setEdited] = useState<Role | "new" | null>(null);
  const pages = usePages({
    query: RolesQuery,
    variables: { where: q ? { nameContainsFold: q } : null },
    pick: (data) => data.roles,
  });
  const shown = pages.rows.find((r) => r.id === open);
  const columns: Column<Role>[] = [
    { head: t("Role"), cell: (r) => <RowButton onOpen={() => setOpen(r.id)}>{r.name}</RowButton> },
    { head: t("Permissions"), cell: (r) => <Words role={r} /> },
    {
      head: t("Grants"),
      num: true,
      cell: (r) =>
        r.grants.length === 0 ? (
          <span className="dim">{t("never")}</span>
        ) : (
          <span className="nowrap">{t("{{count}} times", { count: r.grants.length })}</span>
        ),
    },
    { head: t("Description"), wide: true, cell: (r) => <span className="dim">{r.description}</span> },
  ];
  return (
    <>
      <div className="page-head">
        <h1>{t("Roles")}</h1>
        <span className="dim">{t("permissions in addition to those of the built-in roles")}</span>
      </div>
      <div className="row">
        <FilterBox label={t("Filter by name")} value={q} onChange={setQ} />
        {canCreate(viewer, "ROLE") ? (
          <Button className="push" onClick={() => setEdited("new")}>
            {t("New role")}
          </Button>
        ) : null}
      </div>
      <PagedTable
        label={t("Roles")}
        pages={pages}
        columns={columns}
        selected={open}
        empty={q ? t("No role matches") : t("No roles")}
      >
        {q ? null : t("A role gives a user additional permissions in a domain, in a project or on one object.")}
      </PagedTable>
      {shown ? (
        <RolePanel role={shown} onEdit={() => setEdited(shown)} onClose={() => setOpen(null)} onDone={pages.reload} />
      ) : null}
      {edited ? (
        <RoleDialog role={edited === "new" ? null : edited} onClose={() => setEdited(null)} onDone={pages.reload} />
      ) : null}
    </>
  );
}

/** Shows the permissions of a role in one line. */
function Words({ role }: { role: Role }) {
  return (
    <ul className="tags">
      {role.allows.map((a) => (
        <li key={a.entity}>
          {entityName(a.entity)}{" "}
          <span className="dim">
            {brief(a.entity, a.operations)
              .map((op) => (op === "everything" ? t("everything") : word("AccessOperation", op)))
              .join(", ")}
          </span>
        </li>
      ))}
    </ul>
  );
}
