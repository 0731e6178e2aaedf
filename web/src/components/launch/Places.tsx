import { Select } from "@mantine/core";
import type { Viewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import type { LaunchDraft } from "./request";

interface Props {
  viewer: Viewer;
  draft: LaunchDraft;
  wrong: Record<string, string>;
  onChange: (more: Partial<LaunchDraft>) => void;
}

/** Selects the project and the resource group. Each is hidden if there is only one. */
export function Places({ viewer, draft, wrong, onChange }: Props) {
  const options = (all: { id: string; name: string }[]) => all.map((p) => ({ value: p.id, label: p.name }));
  return (
    <div className="row" style={{ alignItems: "flex-start" }}>
      {viewer.projects.length > 1 || wrong.project ? (
        <Select
          label={t("Project")}
          data={options(viewer.projects)}
          value={draft.project}
          error={wrong.project}
          onChange={(project) => onChange({ project })}
        />
      ) : null}
      {viewer.resourceGroups.length > 1 || wrong.resourceGroup ? (
        <Select
          label={t("Resource group")}
          data={options(viewer.resourceGroups)}
          value={draft.group}
          error={wrong.resourceGroup}
          onChange={(group) => onChange({ group })}
        />
      ) : null}
    </div>
  );
}
