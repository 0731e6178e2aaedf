import { TextInput } from "@mantine/core";
import { graphql } from "../../api/graphql";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { printSize } from "../admin/rules/amounts";
import { diskLimits, type LaunchDraft } from "./request";

const DiskQuery = graphql(`
  query LaunchDisk($user: ID!, $project: ID, $group: ID) {
    effectiveLimits(user: $user, project: $project, resourceGroup: $group) { what limit policy holder }
  }
`);

interface Props {
  draft: LaunchDraft;
  error?: string;
  onChange: (disk: string) => void;
}

/** Edits the disk limit of each container, and shows the maximum and the policy that sets it. */
export function Disk({ draft, error, onChange }: Props) {
  const viewer = useViewer();
  const { data } = useLiveQuery({
    query: DiskQuery,
    variables: { user: viewer.user.id, project: draft.project, group: draft.group },
  });
  const { defaultSize, maxSize, policy, holder } = diskLimits(data?.effectiveLimits ?? []);
  const description = policy
    ? t("At most {{size}}, from policy {{policy}} of {{holder}}. Folders do not count.", {
        size: printSize(maxSize),
        policy,
        holder,
      })
    : t("At most {{size}}, unless a policy allows more. Folders do not count.", { size: printSize(maxSize) });
  return (
    <TextInput
      inputWrapperOrder={["label", "input", "description", "error"]}
      label={t("Disk per container")}
      placeholder={printSize(defaultSize)}
      description={description}
      value={draft.disk}
      error={error}
      onChange={(e) => onChange(e.currentTarget.value)}
    />
  );
}
