import { Select } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { t } from "../../i18n";
import type { Option } from "./Filter";
import { nodesOf } from "./usePages";

const UserPickQuery = graphql(`
  query UserPick($where: UserWhereInput) { users(first: 20, where: $where, orderBy: [{ field: EMAIL, direction: ASC }]) { edges { node { id email fullName } } } }
`);
const ProjectPickQuery = graphql(`
  query ProjectPick($where: ProjectWhereInput) {
    projects(first: 50, where: $where, orderBy: [{ field: NAME, direction: ASC }]) { edges { node { id name domain { id name } } } }
  }
`);
const DomainPickQuery = graphql(`
  query DomainPick($where: DomainWhereInput) { domains(first: 50, where: $where, orderBy: [{ field: NAME, direction: ASC }]) { edges { node { id name } } } }
`);
const PolicyPickQuery = graphql(`
  query PolicyPick($where: ResourcePolicyWhereInput) {
    resourcePolicies(first: 50, where: $where, orderBy: [{ field: NAME, direction: ASC }]) { edges { node { id name } } }
  }
`);
const GroupPickQuery = graphql(`
  query GroupPick { resourceGroups(first: 100, orderBy: [{ field: NAME, direction: ASC }]) { edges { node { id name } } } }
`);

export interface PickProps {
  /** Seen above the box, or with `bare` only said. */
  label: string;
  bare?: boolean;
  value: string | null;
  onChange: (id: string | null, label: string) => void;
  description?: string;
  error?: string;
  required?: boolean;
  placeholder?: string;
  /** The chosen one, where the list may not hold it. */
  chosen?: Option | null;
  w?: number;
  disabled?: boolean;
}

/** A box that is searched at the server, so that thousands are as quick as ten. */
function Pick({ options, onSearch, ...p }: PickProps & { options: Option[]; onSearch: (text: string) => void }) {
  const [kept, setKept] = useState<Option | null>(p.chosen ?? null);
  const all = kept && kept.value === p.value && !options.some((o) => o.value === kept.value) ? [kept, ...options] : options;
  return (
    <Select {...(p.bare ? { "aria-label": p.label } : { label: p.label })} description={p.description} error={p.error} required={p.required} placeholder={p.placeholder ?? t("Search")}
      w={p.w} disabled={p.disabled} searchable clearable={!p.required} clearButtonProps={{ "aria-label": t("Choose none") }} nothingFoundMessage={t("Nothing matches")} filter={({ options: found }) => found}
      data={all} value={p.value} onSearchChange={onSearch}
      onChange={(id) => {
        const option = all.find((o) => o.value === id) ?? null;
        setKept(option);
        p.onChange(id, option?.label ?? "");
      }} />
  );
}

/** What is looked for: nothing while the box shows what was chosen. */
function useSearched(options: (text: string) => Option[] | null): [string, (text: string) => void] {
  const [text, setText] = useState("");
  const [quiet] = useDebouncedValue(text, 200);
  const chosen = options(quiet)?.some((o) => o.label === quiet);
  return [chosen ? "" : quiet.trim(), setText];
}

export function UserPick({ exclude, ...p }: PickProps & { exclude?: ReadonlySet<string> }) {
  const [label, setLabel] = useState(p.chosen?.label ?? "");
  const [q, search] = useSearched((text) => (text === label && p.value ? [{ value: p.value, label }] : null));
  const { data } = useLiveQuery({ query: UserPickQuery, variables: { where: { statusIn: ["active", "inactive", "before_verification"], ...(q ? { or: [{ emailContainsFold: q }, { fullNameContainsFold: q }] } : {}) } } });
  const options = nodesOf(data?.users).filter((u) => !exclude?.has(u.id)).map((u) => ({ value: u.id, label: u.fullName ? `${u.email} (${u.fullName})` : u.email }));
  return <Pick {...p} options={options} onSearch={search} onChange={(id, l) => { setLabel(l); p.onChange(id, l); }} />;
}

export function ProjectPick({ exclude, domain, ...p }: PickProps & { exclude?: ReadonlySet<string>; domain?: string | null }) {
  const [label, setLabel] = useState(p.chosen?.label ?? "");
  const [q, search] = useSearched((text) => (text === label && p.value ? [{ value: p.value, label }] : null));
  const { data } = useLiveQuery({ query: ProjectPickQuery, variables: { where: q ? { nameContainsFold: q } : null } });
  const projects = nodesOf(data?.projects).filter((x) => !exclude?.has(x.id) && (!domain || x.domain.id === domain));
  const many = new Set(projects.map((x) => x.domain.id)).size > 1;
  const options = projects.map((x) => ({ value: x.id, label: many ? `${x.name} (${x.domain.name})` : x.name }));
  return <Pick {...p} options={options} onSearch={search} onChange={(id, l) => { setLabel(l); p.onChange(id, l); }} />;
}

export function DomainPick(p: PickProps) {
  const [label, setLabel] = useState(p.chosen?.label ?? "");
  const [q, search] = useSearched((text) => (text === label && p.value ? [{ value: p.value, label }] : null));
  const { data } = useLiveQuery({ query: DomainPickQuery, variables: { where: q ? { nameContainsFold: q } : null } });
  const options = nodesOf(data?.domains).map((x) => ({ value: x.id, label: x.name }));
  return <Pick {...p} options={options} onSearch={search} onChange={(id, l) => { setLabel(l); p.onChange(id, l); }} />;
}

export function PolicyPick(p: PickProps) {
  const [label, setLabel] = useState(p.chosen?.label ?? "");
  const [q, search] = useSearched((text) => (text === label && p.value ? [{ value: p.value, label }] : null));
  const { data } = useLiveQuery({ query: PolicyPickQuery, variables: { where: q ? { nameContainsFold: q } : null } });
  const options = nodesOf(data?.resourcePolicies).map((x) => ({ value: x.id, label: x.name }));
  return <Pick {...p} options={options} onSearch={search} onChange={(id, l) => { setLabel(l); p.onChange(id, l); }} />;
}

export function GroupPick(p: PickProps) {
  const { data } = useLiveQuery({ query: GroupPickQuery });
  const options = nodesOf(data?.resourceGroups).map((x) => ({ value: x.id, label: x.name }));
  return (
    <Select {...(p.bare ? { "aria-label": p.label } : { label: p.label })} description={p.description} error={p.error} required={p.required} placeholder={p.placeholder} w={p.w} disabled={p.disabled}
      searchable clearable={!p.required} clearButtonProps={{ "aria-label": t("Choose none") }} nothingFoundMessage={t("Nothing matches")} data={options} value={p.value}
      onChange={(id, option) => p.onChange(id, option?.label ?? "")} />
  );
}
