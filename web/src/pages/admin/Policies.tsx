import { Button, SegmentedControl } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { FilterBox } from "../../components/admin/Filter";
import { EffectiveLimits } from "../../components/admin/rules/EffectiveLimits";
import { PolicyDialog } from "../../components/admin/rules/PolicyDialog";
import { PolicyPanel } from "../../components/admin/rules/PolicyPanel";
import { PolicyWords } from "../../components/admin/rules/PolicyWords";
import { type Policy, PolicyFields } from "../../components/admin/rules/policy";
import { canCreate } from "../../components/admin/rules/rights";
import { type Column, PagedTable, RowButton } from "../../components/admin/Table";
import "../../components/admin/rules/rules.css";
import { usePages } from "../../components/admin/usePages";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";

const PoliciesQuery = graphql(
  `
  query Policies($where: ResourcePolicyWhereInput, $first: Int, $after: Cursor) {
    resourcePolicies(first: $first, after: $after, where: $where, orderBy: [{ field: NAME, direction: ASC }]) {
      totalCount pageInfo { hasNextPage endCursor } edges { node { ...PolicyFields } }
    }
  }
`,
  [PolicyFields],
);

export function Policies() {
  const { view, ...place } = useSearch({ from: "/frame/admin/policies" });
  const navigate = useNavigate({ from: "/admin/policies" });
  return (
    <>
      <div className="page-head">
        <h1>{t("Policies")}</h1>
        <SegmentedControl
          aria-label={t("View")}
          value={view ?? "list"}
          onChange={(v) => void navigate({ search: v === "who" ? { view: "who" } : {} })}
          data={[
            { value: "list", label: t("Policies") },
            { value: "who", label: t("Effective limits") },
          ]}
        />
        {view === "who" ? null : <span className="dim">{t("limits for domains, projects, users and keypairs")}</span>}
      </div>
      {view === "who" ? (
        <EffectiveLimits
          place={place}
          onChange={(more) => void navigate({ search: (old) => ({ ...old, ...more }), replace: true })}
        />
      ) : (
        <List />
      )}
    </>
  );
}

function List() {
  const viewer = useViewer();
  const [q, setQ] = useState("");
  const [open, setOpen] = useState<string | null>(null);
  const [edited, setEdited] = useState<Policy | "new" | null>(null);
  const pages = usePages({
    query: PoliciesQuery,
    variables: { where: q ? { nameContainsFold: q } : null },
    pick: (data) => data.resourcePolicies,
  });
  const shown = pages.rows.find((p) => p.id === open);
  const columns: Column<Policy>[] = [
    { head: t("Policy"), cell: (p) => <RowButton onOpen={() => setOpen(p.id)}>{p.name}</RowButton> },
    { head: t("Limits"), cell: (p) => <PolicyWords policy={p} /> },
  ];
  return (
    <>
      <div className="row">
        <FilterBox label={t("Filter by name")} value={q} onChange={setQ} />
        {canCreate(viewer, "RESOURCE_POLICY") ? (
          <Button className="push" onClick={() => setEdited("new")}>
            {t("New policy")}
          </Button>
        ) : null}
      </div>
      <PagedTable
        label={t("Policies")}
        pages={pages}
        columns={columns}
        selected={open}
        empty={q ? t("No policy matches") : t("No policies")}
      >
        {q ? null : t("Without a policy, only the size of the cluster limits users.")}
      </PagedTable>
      {shown ? (
        <PolicyPanel
          policy={shown}
          onEdit={() => setEdited(shown)}
          onClose={() => setOpen(null)}
          onGone={pages.reload}
        />
      ) : null}
      {edited ? (
        <PolicyDialog policy={edited === "new" ? null : edited} onClose={() => setEdited(null)} onDone={pages.reload} />
      ) : null}
    </>
  );
}
