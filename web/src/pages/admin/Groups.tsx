import { Button, SegmentedControl } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { AvailableGroups } from "../../components/admin/rules/AvailableGroups";
import { GroupDialog } from "../../components/admin/rules/GroupDialog";
import { GroupPanel } from "../../components/admin/rules/GroupPanel";
import { accessPhrase, type Group, GroupFields, sessionTypes } from "../../components/admin/rules/group";
import { canCreate } from "../../components/admin/rules/rights";
import { type Column, PagedTable, RowButton } from "../../components/admin/Table";
import "../../components/admin/rules/rules.css";
import { usePages } from "../../components/admin/usePages";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { typeWords } from "../../words";

const GroupsQuery = graphql(
  `
  query Groups($first: Int, $after: Cursor) {
    resourceGroups(first: $first, after: $after, orderBy: [{ field: NAME, direction: ASC }]) {
      totalCount pageInfo { hasNextPage endCursor } edges { node { ...GroupFields } }
    }
  }
`,
  [GroupFields],
);

export function Groups() {
  const viewer = useViewer();
  const { view, open, ...whose } = useSearch({ from: "/frame/admin/groups" });
  const navigate = useNavigate({ from: "/admin/groups" });
  const [edited, setEdited] = useState<Group | "new" | null>(null);
  const pages = usePages({ query: GroupsQuery, variables: {}, pick: (data) => data.resourceGroups });
  const show = (id: string | undefined) => void navigate({ search: (old) => ({ ...old, open: id }), replace: true });
  const shown = pages.rows.find((g) => g.id === open);
  const columns: Column<Group>[] = [
    { head: t("Resource group"), cell: (g) => <RowButton onOpen={() => show(g.id)}>{g.name}</RowButton> },
    { head: t("Open to"), cell: (g) => <span className={g.active ? undefined : "dim"}>{t(...accessPhrase(g))}</span> },
    {
      head: t("Session types"),
      cell: (g) =>
        sessionTypes.every((s) => g.sessionTypes.includes(s.value)) ? (
          <span className="dim">{t("all")}</span>
        ) : (
          typeWords(g.sessionTypes).join(", ")
        ),
    },
    { head: t("Agents"), num: true, cell: (g) => g.agents.totalCount },
    { head: t("Description"), wide: true, cell: (g) => <span className="dim">{g.description}</span> },
  ];
  return (
    <>
      <div className="page-head">
        <h1>{t("Resource groups")}</h1>
        <SegmentedControl
          aria-label={t("View")}
          value={view ?? "list"}
          onChange={(v) => void navigate({ search: v === "who" ? { view: "who" } : {} })}
          data={[
            { value: "list", label: t("Groups") },
            { value: "who", label: t("Access") },
          ]}
        />
        {canCreate(viewer, "RESOURCE_GROUP") ? (
          <Button className="push" onClick={() => setEdited("new")}>
            {t("New group")}
          </Button>
        ) : null}
      </div>
      {view === "who" ? (
        <AvailableGroups
          whose={whose}
          onChange={(more) => void navigate({ search: { view: "who", ...more }, replace: true })}
          onOpen={show}
        />
      ) : (
        <PagedTable
          label={t("Resource groups")}
          pages={pages}
          columns={columns}
          selected={open}
          empty={t("No resource groups")}
        >
          {t("Each agent belongs to a resource group. Without a group, no session can start.")}
        </PagedTable>
      )}
      {shown ? (
        <GroupPanel
          group={shown}
          onEdit={() => setEdited(shown)}
          onClose={() => show(undefined)}
          onDone={pages.reload}
        />
      ) : null}
      {edited ? (
        <GroupDialog group={edited === "new" ? null : edited} onClose={() => setEdited(null)} onDone={pages.reload} />
      ) : null}
    </>
  );
}
