import { SegmentedControl } from "@mantine/core";
import { graphql } from "../../../api/graphql";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { useNames } from "../../../hooks/useNames";
import { t } from "../../../i18n";
import { Empty, FailureNote } from "../../Note";
import { ProjectPick, UserPick } from "../Pickers";
import { RowButton, Table } from "../Table";
import { nodesOf } from "../usePages";
import { reasons } from "./group";

const WhichGroupsQuery = graphql(`
  query WhichGroups($user: ID, $project: ID) {
    resourceGroupAccess(user: $user, project: $project, first: 100) {
      totalCount edges { node { resourceGroup { id name description sessionTypes } via } }
    }
  }
`);

export interface Whose {
  of?: "user" | "project";
  user?: string;
  project?: string;
}

/** Shows the groups that the viewer, a user or a project can use, and why. */
export function AvailableGroups({
  whose,
  onChange,
  onOpen,
}: {
  whose: Whose;
  onChange: (whose: Whose) => void;
  onOpen: (group: string) => void;
}) {
  const { of } = whose;
  const id = of ? whose[of] : undefined;
  const names = useNames([id]);
  const chosen = id ? { value: id, label: names[id] ?? "" } : null;
  const { data, failure } = useLiveQuery({
    query: WhichGroupsQuery,
    variables: { user: of === "user" ? id : null, project: of === "project" ? id : null },
    pause: Boolean(of) && !id,
  });
  const selected = !of || Boolean(id);
  const rows = (selected ? nodesOf(data?.resourceGroupAccess) : []).flatMap((a) =>
    a.resourceGroup ? [{ ...a.resourceGroup, via: a.via }] : [],
  );
  return (
    <>
      <section className="panel pad row" aria-label={t("Show groups for")}>
        <SegmentedControl
          aria-label={t("Show groups for")}
          value={of ?? "mine"}
          onChange={(v) => onChange({ of: v === "mine" ? undefined : (v as Whose["of"]) })}
          data={[
            { value: "mine", label: t("Me") },
            { value: "user", label: t("A user") },
            { value: "project", label: t("A project") },
          ]}
        />
        {of === "user" ? (
          <UserPick
            key={`u ${chosen?.label}`}
            bare
            label={t("User")}
            w={300}
            value={id ?? null}
            chosen={chosen}
            onChange={(user) => onChange({ of, user: user ?? undefined })}
          />
        ) : null}
        {of === "project" ? (
          <ProjectPick
            key={`p ${chosen?.label}`}
            bare
            label={t("Project")}
            w={300}
            value={id ?? null}
            chosen={chosen}
            onChange={(project) => onChange({ of, project: project ?? undefined })}
          />
        ) : null}
      </section>
      <FailureNote failure={failure} />
      {!selected ? (
        <div className="panel">
          <Empty title={t("Nothing selected")}>{of === "user" ? t("Choose a user.") : t("Choose a project.")}</Empty>
        </div>
      ) : null}
      {selected && data && rows.length === 0 ? (
        <div className="panel">
          <Empty title={t("No resource groups")}>
            {t("No resource group is open to them, so no session can start.")}
          </Empty>
        </div>
      ) : null}
      {rows.length > 0 ? (
        <Table
          label={t("Available resource groups")}
          rows={rows}
          columns={[
            { head: t("Resource group"), cell: (g) => <RowButton onOpen={() => onOpen(g.id)}>{g.name}</RowButton> },
            { head: t("Reason"), cell: (g) => g.via.map((v) => t(reasons[v] ?? v)).join(", ") },
            { head: t("Description"), wide: true, cell: (g) => <span className="dim">{g.description}</span> },
          ]}
        />
      ) : null}
      {selected && data && data.resourceGroupAccess.totalCount > rows.length ? (
        <p className="dim">
          {t("Showing {{n}} of {{total}}.", { n: rows.length, total: data.resourceGroupAccess.totalCount })}
        </p>
      ) : null}
    </>
  );
}
