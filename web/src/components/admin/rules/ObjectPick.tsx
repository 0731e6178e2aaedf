import { Select } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { t } from "../../../i18n";
import { DomainPick, GroupPick, PolicyPick, ProjectPick, UserPick } from "../Pickers";
import { nodesOf } from "../usePages";
import type { Entity } from "./role";

/** Objects of the kinds that have no search box. Only the list of the selected kind is requested. */
const ObjectsQuery = graphql(`
  query ObjectPick($role: Boolean!, $preset: Boolean!, $agent: Boolean!, $registry: Boolean!, $image: Boolean!, $volume: Boolean!, $session: Boolean!, $vfolder: Boolean!, $task: Boolean!,
    $sessions: SessionWhereInput, $vfolders: VfolderWhereInput) {
    roles(first: 100) @include(if: $role) { edges { node { id name } } }
    resourcePresets(first: 100) @include(if: $preset) { edges { node { id name } } }
    agents(first: 100) @include(if: $agent) { edges { node { id name } } }
    registries(first: 100) @include(if: $registry) { edges { node { id name } } }
    images(first: 100, where: { status: ALIVE }) @include(if: $image) { edges { node { id reference } } }
    volumes(first: 100) @include(if: $volume) { edges { node { id name } } }
    sessions(first: 50, where: $sessions) @include(if: $session) { edges { node { id name owner { id email } } } }
    vfolders(first: 50, where: $vfolders) @include(if: $vfolder) { edges { node { id name } } }
    tasks(first: 100, orderBy: [{ field: CREATED_AT, direction: DESC }]) @include(if: $task) {
      edges { node { id title } }
    }
  }
`);

interface Props {
  kind: Entity;
  label: string;
  value: string | null;
  error?: string;
  onChange: (id: string | null) => void;
}

/** Selects one object of any kind. */
export function ObjectPick({ kind, ...p }: Props) {
  const box = { ...p, required: true };
  switch (kind) {
    case "DOMAIN":
      return <DomainPick {...box} />;
    case "PROJECT":
      return <ProjectPick {...box} />;
    case "USER":
      return <UserPick {...box} />;
    case "RESOURCE_POLICY":
      return <PolicyPick {...box} />;
    case "RESOURCE_GROUP":
      return <GroupPick {...box} />;
    default:
      return <Listed kind={kind} {...p} />;
  }
}

function Listed({ kind, label, value, error, onChange }: Props) {
  const [text, setText] = useState("");
  const [q] = useDebouncedValue(text, 200);
  const named = q && !value ? { nameContainsFold: q } : null;
  const { data } = useLiveQuery({
    query: ObjectsQuery,
    variables: {
      role: kind === "ROLE",
      preset: kind === "RESOURCE_PRESET",
      agent: kind === "AGENT",
      registry: kind === "REGISTRY",
      image: kind === "IMAGE",
      volume: kind === "VOLUME",
      session: kind === "SESSION",
      vfolder: kind === "VFOLDER",
      task: kind === "TASK",
      sessions: { terminatedAtIsNil: true, ...named },
      vfolders: { status: "READY", ...named },
    },
  });
  const options = [
    ...nodesOf(data?.roles),
    ...nodesOf(data?.resourcePresets),
    ...nodesOf(data?.agents),
    ...nodesOf(data?.registries),
    ...nodesOf(data?.volumes),
    ...nodesOf(data?.vfolders),
    ...nodesOf(data?.images).map((i) => ({ id: i.id, name: i.reference })),
    ...nodesOf(data?.sessions).map((s) => ({ id: s.id, name: s.owner ? `${s.name} (${s.owner.email})` : s.name })),
    ...nodesOf(data?.tasks).map((x) => ({ id: x.id, name: x.title })),
  ].map((o) => ({ value: o.id, label: o.name }));
  return (
    <Select
      label={label}
      required
      searchable
      error={error}
      value={value}
      data={options}
      placeholder={t("Search")}
      nothingFoundMessage={t("No matches")}
      onSearchChange={setText}
      onChange={onChange}
    />
  );
}
