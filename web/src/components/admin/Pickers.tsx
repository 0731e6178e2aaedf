import { Select } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useState } from "react";
import { graphql, type VariablesOf } from "../../api/graphql";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import type { Option } from "./Filter";
import { nodesOf } from "./usePages";

const UserPickQuery = graphql(`
  query UserPick($where: UserWhereInput, $domain: ID!, $inDomain: Boolean!) {
    users(first: 20, where: $where, orderBy: [{ field: EMAIL, direction: ASC }]) @skip(if: $inDomain) {
      edges { node { id email fullName } }
    }
    node(id: $domain) @include(if: $inDomain) {
      id
      ... on Domain {
        users(first: 20, where: $where, orderBy: [{ field: EMAIL, direction: ASC }]) {
          edges { node { id email fullName } }
        }
      }
    }
  }
`);
const ProjectPickQuery = graphql(`
  query ProjectPick($where: ProjectWhereInput, $domain: ID!, $inDomain: Boolean!) {
    projects(first: 50, where: $where, orderBy: [{ field: NAME, direction: ASC }]) @skip(if: $inDomain) {
      edges { node { id name domain { id name } } }
    }
    node(id: $domain) @include(if: $inDomain) {
      id
      ... on Domain {
        projects(first: 50, where: $where, orderBy: [{ field: NAME, direction: ASC }]) {
          edges { node { id name domain { id name } } }
        }
      }
    }
  }
`);
const DomainPickQuery = graphql(`
  query DomainPick($where: DomainWhereInput) {
    domains(first: 50, where: $where, orderBy: [{ field: NAME, direction: ASC }]) { edges { node { id name } } }
  }
`);
const PolicyPickQuery = graphql(`
  query PolicyPick($where: ResourcePolicyWhereInput) {
    resourcePolicies(first: 50, where: $where, orderBy: [{ field: NAME, direction: ASC }]) {
      edges { node { id name } }
    }
  }
`);
const GroupPickQuery = graphql(`
  query GroupPick {
    resourceGroups(first: 100, orderBy: [{ field: NAME, direction: ASC }]) { edges { node { id name } } }
  }
`);

export interface PickProps {
  /** The label above the box; with `bare`, only for screen readers. */
  label: string;
  bare?: boolean;
  value: string | null;
  onChange: (id: string | null, label: string) => void;
  description?: string;
  error?: string;
  required?: boolean;
  placeholder?: string;
  /** The selected option, if the list may not contain it. */
  chosen?: Option | null;
  w?: number;
  disabled?: boolean;
}

/** A box that searches on the server, so that it stays fast with thousands of options. */
function Pick({ options, onSearch, ...p }: PickProps & { options: Option[]; onSearch: (text: string) => void }) {
  const [lastChosen, setKept] = useState<Option | null>(p.chosen ?? null);
  const all =
    lastChosen && lastChosen.value === p.value && !options.some((o) => o.value === lastChosen.value)
      ? [lastChosen, ...options]
      : options;
  return (
    <Select
      {...(p.bare ? { "aria-label": p.label } : { label: p.label })}
      description={p.description}
      error={p.error}
      required={p.required}
      placeholder={p.placeholder ?? t("Search")}
      w={p.w}
      disabled={p.disabled}
      searchable
      openOnFocus={false}
      clearable={!p.required}
      clearButtonProps={{ "aria-label": t("Clear") }}
      nothingFoundMessage={t("No matches")}
      filter={({ options: found }) => found}
      data={all}
      value={p.value}
      onSearchChange={onSearch}
      onChange={(id) => {
        const option = all.find((o) => o.value === id) ?? null;
        setKept(option);
        p.onChange(id, option?.label ?? "");
      }}
    />
  );
}

/** The search text: empty while the box shows the selected item. */
function useSearched(options: (text: string) => Option[] | null): [string, (text: string) => void] {
  const [text, setText] = useState("");
  const [quiet] = useDebouncedValue(text, 200);
  const chosen = options(quiet)?.some((o) => o.label === quiet);
  return [chosen ? "" : quiet.trim(), setText];
}

const anId = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

interface UserPickProps extends PickProps {
  exclude?: ReadonlySet<string>;
  domain?: string;
  /** Accepts the id of a user whom the viewer cannot see. */
  byId?: boolean;
}

export function UserPick({ exclude, domain, byId, ...p }: UserPickProps) {
  const viewer = useViewer();
  const [label, setLabel] = useState(p.chosen?.label ?? "");
  const [q, search] = useSearched((text) => (text === label && p.value ? [{ value: p.value, label }] : null));
  const id = byId && anId.test(q) ? q.toLowerCase() : null;
  const where: VariablesOf<typeof UserPickQuery>["where"] = {
    statusIn: ["ACTIVE", "INACTIVE", "BEFORE_VERIFICATION"],
    ...(id ? { id } : q ? { or: [{ emailContainsFold: q }, { fullNameContainsFold: q }] } : {}),
  };
  const { data } = useLiveQuery({
    query: UserPickQuery,
    variables: { where, domain: domain ?? viewer.user.domain.id, inDomain: Boolean(domain) },
  });
  const found = nodesOf(data?.users ?? (data?.node && "users" in data.node ? data.node.users : null));
  const options = found
    .filter((u) => !exclude?.has(u.id))
    .map((u) => ({ value: u.id, label: u.fullName ? `${u.email} (${u.fullName})` : u.email }));
  if (data && id && found.length === 0) options.push({ value: id, label: t("User {{id}}", { id }) });
  return (
    <Pick
      {...p}
      options={options}
      onSearch={search}
      onChange={(id, l) => {
        setLabel(l);
        p.onChange(id, l);
      }}
    />
  );
}

export function ProjectPick({
  exclude,
  domain,
  ...p
}: PickProps & { exclude?: ReadonlySet<string>; domain?: string | null }) {
  const viewer = useViewer();
  const [label, setLabel] = useState(p.chosen?.label ?? "");
  const [q, search] = useSearched((text) => (text === label && p.value ? [{ value: p.value, label }] : null));
  const variables = {
    where: q ? { nameContainsFold: q } : null,
    domain: domain ?? viewer.user.domain.id,
    inDomain: Boolean(domain),
  };
  const { data } = useLiveQuery({ query: ProjectPickQuery, variables });
  const projects = nodesOf(
    data?.projects ?? (data?.node && "projects" in data.node ? data.node.projects : null),
  ).filter((x) => !exclude?.has(x.id));
  const many = new Set(projects.map((x) => x.domain.id)).size > 1;
  const options = projects.map((x) => ({ value: x.id, label: many ? `${x.name} (${x.domain.name})` : x.name }));
  return (
    <Pick
      {...p}
      options={options}
      onSearch={search}
      onChange={(id, l) => {
        setLabel(l);
        p.onChange(id, l);
      }}
    />
  );
}

/** Several projects of one domain. */
export function ProjectsPick({
  label,
  domain,
  value,
  error,
  onChange,
}: {
  label: string;
  domain: string;
  value: Option[];
  error?: string;
  onChange: (value: Option[]) => void;
}) {
  return (
    <div className="stack small">
      <ProjectPick
        key={value.length}
        label={label}
        placeholder={value.length > 0 ? t("Add another") : t("none")}
        domain={domain}
        value={null}
        error={error}
        exclude={new Set(value.map((o) => o.value))}
        onChange={(id, name) => id && onChange([...value, { value: id, label: name }])}
      />
      {value.length > 0 ? (
        <div className="chips">
          {value.map((o) => (
            <button
              key={o.value}
              type="button"
              className="chip"
              aria-label={t("Remove {{name}}", { name: o.label })}
              onClick={() => onChange(value.filter((x) => x !== o))}
            >
              {o.label} <span aria-hidden="true">×</span>
            </button>
          ))}
        </div>
      ) : null}
    </div>
  );
}

export function DomainPick(p: PickProps) {
  const [label, setLabel] = useState(p.chosen?.label ?? "");
  const [q, search] = useSearched((text) => (text === label && p.value ? [{ value: p.value, label }] : null));
  const { data } = useLiveQuery({ query: DomainPickQuery, variables: { where: q ? { nameContainsFold: q } : null } });
  const options = nodesOf(data?.domains).map((x) => ({ value: x.id, label: x.name }));
  return (
    <Pick
      {...p}
      options={options}
      onSearch={search}
      onChange={(id, l) => {
        setLabel(l);
        p.onChange(id, l);
      }}
    />
  );
}

export function PolicyPick(p: PickProps) {
  const [label, setLabel] = useState(p.chosen?.label ?? "");
  const [q, search] = useSearched((text) => (text === label && p.value ? [{ value: p.value, label }] : null));
  const { data } = useLiveQuery({ query: PolicyPickQuery, variables: { where: q ? { nameContainsFold: q } : null } });
  const options = nodesOf(data?.resourcePolicies).map((x) => ({ value: x.id, label: x.name }));
  return (
    <Pick
      {...p}
      options={options}
      onSearch={search}
      onChange={(id, l) => {
        setLabel(l);
        p.onChange(id, l);
      }}
    />
  );
}

export function GroupPick(p: PickProps) {
  const { data } = useLiveQuery({ query: GroupPickQuery });
  const options = nodesOf(data?.resourceGroups).map((x) => ({ value: x.id, label: x.name }));
  return (
    <Select
      {...(p.bare ? { "aria-label": p.label } : { label: p.label })}
      description={p.description}
      error={p.error}
      required={p.required}
      placeholder={p.placeholder}
      w={p.w}
      disabled={p.disabled}
      searchable
      clearable={!p.required}
      clearButtonProps={{ "aria-label": t("Clear") }}
      nothingFoundMessage={t("No matches")}
      data={options}
      value={p.value}
      onChange={(id, option) => p.onChange(id, option?.label ?? "")}
    />
  );
}
