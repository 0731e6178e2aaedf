import { MultiSelect } from "@mantine/core";
import { graphql } from "../../../api/graphql";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { t } from "../../../i18n";
import { nodesOf } from "../usePages";

const ProjectsQuery = graphql(`
  query RegistryProjects {
    projects(first: 200, orderBy: [{ field: NAME, direction: ASC }]) { edges { node { id name domain { id name } } } }
  }
`);

interface Props {
  /** The projects that are chosen already: they stay in the list although there are more than it shows. */
  known: readonly { id: string; name: string }[];
  value: string[];
  error?: string;
  onChange: (ids: string[]) => void;
}

/** The projects whose members can use a registry. */
export function RegistryProjects({ known, value, error, onChange }: Props) {
  const { data } = useLiveQuery({ query: ProjectsQuery, variables: {} });
  const names = new Map(known.map((p) => [p.id, p.name]));
  for (const p of nodesOf(data?.projects)) names.set(p.id, `${p.name} (${p.domain.name})`);
  return (
    <MultiSelect
      label={t("Projects that can use this registry")}
      description={t(
        "Only their members can start sessions from its images. Leave empty if everyone can whose domain can.",
      )}
      searchable
      data={[...names].map(([id, label]) => ({ value: id, label }))}
      value={value}
      error={error}
      onChange={onChange}
    />
  );
}
