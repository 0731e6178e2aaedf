import { Select } from "@mantine/core";
import { useState } from "react";
import { Groups } from "../../components/account/Groups";
import { graphql } from "../../api/graphql";
import { FailureNote } from "../../components/Note";
import { Table } from "../../components/admin/Table";
import { each, shown, whatOf } from "../../components/admin/rules/amounts";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";

const MyLimitsQuery = graphql(`
  query MyLimits($user: ID!, $project: ID, $resourceGroup: ID) {
    effectiveLimits(user: $user, project: $project, resourceGroup: $resourceGroup) {
      what limit used assignable scope holder policy resourceGroup withinProject
    }
  }
`);

/** What binds in one project on one resource group, and what is left. */
export function Limits() {
  const { user, projects, resourceGroups } = useViewer();
  const [project, setProject] = useState(projects[0]?.id ?? "");
  const [group, setGroup] = useState("");
  const { data, failure } = useLiveQuery({ query: MyLimitsQuery, variables: { user: user.id, project: project || null, resourceGroup: group || null }, requestPolicy: "cache-and-network" });
  const rows = (data?.effectiveLimits ?? []).map((l) => ({ ...l, id: l.what }));
  return (
    <>
      <div className="page-head">
        <h1>{t("My limits")}</h1>
        <div className="push row">
          {projects.length > 1 ? <Select aria-label={t("Project")} w={180} value={project} onChange={(p) => setProject(p ?? "")} data={projects.map((p) => ({ value: p.id, label: p.name }))} /> : null}
          <Select aria-label={t("Resource group")} w={200} value={group} onChange={(g) => setGroup(g ?? "")}
            data={[{ value: "", label: t("on any resource group") }, ...resourceGroups.map((g) => ({ value: g.id, label: t("on {{name}}", { name: g.name }) }))]} />
        </div>
      </div>
      <FailureNote failure={failure} />
      {data && rows.length === 0 ? <div className="panel empty dim">{t("Nothing is limited for you here.")}</div> : null}
      {rows.length > 0 ? (
        <Table label={t("My limits")} rows={rows}
          columns={[
            { head: t("Of what"), cell: (l) => t(...whatOf(l.what)) },
            { head: t("Used"), num: true, cell: (l) => (each.has(l.what) ? <span className="dim">–</span> : shown(l.what, l.used)) },
            { head: t("Limit"), num: true, cell: (l) => shown(l.what, l.limit) },
            { head: t("Left"), num: true, cell: (l) => (each.has(l.what) ? <span className="dim">–</span> : <span className={Number(l.assignable) > 0 ? "" : "tone-wait"}>{shown(l.what, l.assignable)}</span>) },
            { head: "", wide: true, cell: (l) => (each.has(l.what) ? null : <Meter name={t(...whatOf(l.what))} used={Number(l.used)} limit={Number(l.limit)} />) },
            { head: t("Bound by"), cell: (l) => (
              <>
                <b>{l.policy}</b> <span className="dim">{t("of {{scope}} {{holder}}", { scope: t(l.scope), holder: l.scope === "user" ? t("yourself") : l.holder })}</span>
                {l.resourceGroup || l.withinProject ? (
                  <div className="dim">
                    {[l.resourceGroup ? t("only on {{name}}", { name: l.resourceGroup }) : "", l.withinProject ? t("only in project {{name}}", { name: l.withinProject }) : ""].filter(Boolean).join(", ")}
                  </div>
                ) : null}
              </>
            ) },
          ]} />
      ) : null}
      <p className="dim">{t("What is not listed has no limit. Where several policies bind, the one that leaves least is shown.")}</p>
      <Groups />
    </>
  );
}

function Meter({ name, used, limit }: { name: string; used: number; limit: number }) {
  const part = limit > 0 ? Math.min(1, used / limit) : 1;
  return (
    <div className="meter" role="meter" aria-label={name} aria-valuemin={0} aria-valuemax={limit} aria-valuenow={Math.min(used, limit)} style={{ width: 90 }}>
      <i className={part >= 1 ? "full" : ""} style={{ width: `${part * 100}%` }} />
    </div>
  );
}
