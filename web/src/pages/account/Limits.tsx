import { Select } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { Groups } from "../../components/account/Groups";
import { MyBudgets } from "../../components/account/MyBudgets";
import { LimitsTable } from "../../components/admin/rules/LimitsTable";
import { FailureNote } from "../../components/Note";
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

/** Shows the effective limits in one project on one resource group, and their usage. */
export function Limits() {
  const { user, projects, resourceGroups } = useViewer();
  const [project, setProject] = useState(projects[0]?.id ?? "");
  const [group, setGroup] = useState("");
  const { data, failure } = useLiveQuery({
    query: MyLimitsQuery,
    variables: { user: user.id, project: project || null, resourceGroup: group || null },
    requestPolicy: "cache-and-network",
  });
  const list = data?.effectiveLimits ?? [];
  return (
    <>
      <div className="page-head">
        <h1>{t("My limits")}</h1>
        <div className="push row">
          {projects.length > 1 ? (
            <Select
              aria-label={t("Project")}
              w={180}
              value={project}
              onChange={(p) => setProject(p ?? "")}
              data={projects.map((p) => ({ value: p.id, label: p.name }))}
            />
          ) : null}
          <Select
            aria-label={t("Resource group")}
            w={200}
            value={group}
            onChange={(g) => setGroup(g ?? "")}
            data={[
              { value: "", label: t("in all resource groups") },
              ...resourceGroups.map((g) => ({ value: g.id, label: t("in {{name}}", { name: g.name }) })),
            ]}
          />
        </div>
      </div>
      <FailureNote failure={failure} />
      {data && list.length === 0 ? <div className="panel empty dim">{t("You have no limits here.")}</div> : null}
      {list.length > 0 ? (
        <section className="panel scroll-x" aria-label={t("My limits")}>
          <LimitsTable list={list} />
        </section>
      ) : null}
      <p className="dim">
        {t(
          "Resources that are not listed have no limit. If several policies apply, the limit that leaves the least is shown.",
        )}
      </p>
      <MyBudgets />
      <Groups />
    </>
  );
}
