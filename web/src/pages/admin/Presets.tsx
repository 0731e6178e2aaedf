import { Button, Select } from "@mantine/core";
import { useState } from "react";
import { graphql, type ResultOf } from "../../api/graphql";
import { PresetDialog } from "../../components/admin/rules/PresetDialog";
import { PresetFields } from "../../components/admin/rules/preset";
import { canCreate } from "../../components/admin/rules/rights";
import { type Column, Table } from "../../components/admin/Table";
import "../../components/admin/rules/rules.css";
import { type Node, nodesOf } from "../../components/admin/usePages";
import { Confirm } from "../../components/Confirm";
import { bytes, slotsLine } from "../../components/format";
import { PresetFit } from "../../components/launch/PresetFit";
import { Empty, FailureNote } from "../../components/Note";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";

const PresetsQuery = graphql(
  `
  query Presets($group: ID) {
    resourcePresets(resourceGroup: $group, first: 100, orderBy: [{ field: NAME }]) {
      edges { node { ...PresetFields fit(resourceGroup: $group) { state reason } } }
    }
    resourceGroups(first: 100, orderBy: [{ field: NAME, direction: ASC }]) { edges { node { id name } } }
  }
`,
  [PresetFields],
);
const DeletePreset = graphql(
  `mutation DeletePreset($input: DeleteResourcePresetInput!) { deleteResourcePreset(input: $input) { id } }`,
);

type Row = Node<ResultOf<typeof PresetsQuery>["resourcePresets"]>;

export function Presets() {
  const viewer = useViewer();
  const [group, setGroup] = useState<string | undefined>(undefined);
  const { data, failure, refetch } = useLiveQuery({ query: PresetsQuery, variables: { group: group ?? null } });
  const remove = useAction(DeletePreset);
  const [edited, setEdited] = useState<Row | "new" | null>(null);
  const [deleting, setDeleting] = useState<Row | null>(null);
  const rows = nodesOf(data?.resourcePresets);
  const groups = nodesOf(data?.resourceGroups);
  const columns: Column<Row>[] = [
    {
      head: t("Preset"),
      cell: (p) => (
        <>
          <b className="nowrap">{p.name}</b>
          {p.description ? <div className="dim">{p.description}</div> : null}
        </>
      ),
    },
    {
      head: t("Requested resources"),
      cell: (p) => (
        <>
          {slotsLine(p.slots)}
          {p.shmBytes > 0 ? (
            <span className="dim"> · {t("{{size}} shared memory", { size: bytes(p.shmBytes) })}</span>
          ) : null}
        </>
      ),
    },
    { head: t("Resource group"), cell: (p) => p.resourceGroup?.name ?? <span className="dim">{t("all")}</span> },
    { head: t("Availability for you"), wide: true, cell: (p) => <PresetFit fit={p.fit} /> },
    {
      head: t("Actions"),
      num: true,
      cell: (p) => (
        <span className="nowrap">
          {p.permissions.includes("UPDATE") ? (
            <Button
              variant="subtle"
              size="compact-xs"
              aria-label={t("Edit {{name}}", { name: p.name })}
              onClick={() => setEdited(p)}
            >
              {t("Edit")}
            </Button>
          ) : null}
          {p.permissions.includes("DELETE") ? (
            <Button
              variant="subtle"
              color="red"
              size="compact-xs"
              aria-label={t("Delete {{name}}", { name: p.name })}
              onClick={() => {
                remove.clear();
                setDeleting(p);
              }}
            >
              {t("Delete")}
            </Button>
          ) : null}
        </span>
      ),
    },
  ];
  const shown = rows.some((p) => p.permissions.length > 1) ? columns : columns.slice(0, -1);
  async function confirmed() {
    if (!deleting || !(await remove.run({ input: { id: deleting.id } }))) return;
    setDeleting(null);
    refetch();
  }
  return (
    <>
      <div className="page-head">
        <h1>{t("Presets")}</h1>
        <span className="dim">{t("named sizes to choose from when launching a session")}</span>
      </div>
      <div className="row">
        <Select
          aria-label={t("Resource group")}
          w={260}
          allowDeselect={false}
          value={group ?? ""}
          onChange={(g) => setGroup(g || undefined)}
          data={[
            { value: "", label: t("Presets for all groups") },
            ...groups.map((g) => ({ value: g.id, label: t("All presets in {{group}}", { group: g.name }) })),
          ]}
        />
        {canCreate(viewer, "RESOURCE_PRESET") ? (
          <Button className="push" onClick={() => setEdited("new")}>
            {t("New preset")}
          </Button>
        ) : null}
      </div>
      <FailureNote failure={failure} />
      {data && rows.length === 0 ? (
        <div className="panel">
          <Empty title={t("No presets")}>
            {t("Users then choose one of three default sizes, or enter their own.")}
          </Empty>
        </div>
      ) : null}
      {rows.length > 0 ? <Table label={t("Presets")} rows={rows} columns={shown} /> : null}
      {edited ? (
        <PresetDialog
          preset={edited === "new" ? null : edited}
          onClose={() => setEdited(null)}
          onDone={(p) => {
            setGroup(p ?? group);
            refetch();
          }}
        />
      ) : null}
      <Confirm
        opened={deleting !== null}
        title={t("Delete {{name}}?", { name: deleting?.name ?? "" })}
        action={t("Delete")}
        busy={remove.busy}
        failure={remove.failure}
        onClose={() => setDeleting(null)}
        onConfirm={() => void confirmed()}
      >
        {t("Running sessions that use it are not affected.")}
      </Confirm>
    </>
  );
}
