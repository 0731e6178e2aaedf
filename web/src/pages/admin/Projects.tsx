import { Button, Checkbox, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { byField } from "../../api/errors";
import { graphql } from "../../api/graphql";
import { FailureNote } from "../../components/Note";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";

const ProjectsQuery = graphql(`
  query Projects {
    projects(first: 100, orderBy: [{ field: NAME, direction: ASC }]) {
      edges { node { id name description active domain { id name } policies { id policy { id name } } memberships { id admin user { id email } } } }
    }
    users(first: 100, where: { status: active }, orderBy: [{ field: EMAIL, direction: ASC }]) { edges { node { id email } } }
    resourcePolicies(first: 100) { edges { node { id name } } }
  }
`);
const CreateProject = graphql(`mutation CreateProject($input: CreateProjectInput!) { createProject(input: $input) { project { id name } } }`);
const SetMembership = graphql(`
  mutation SetMembership($input: SetMembershipInput!) { setMembership(input: $input) { project { id memberships { id admin user { id email } } } } }
`);
const RemoveMembership = graphql(`
  mutation RemoveMembership($input: RemoveMembershipInput!) { removeMembership(input: $input) { project { id memberships { id admin user { id email } } } } }
`);
const AttachPolicy = graphql(`
  mutation AttachPolicy($input: AttachResourcePolicyInput!) { attachResourcePolicy(input: $input) { policy { id } } }
`);

export function Projects() {
  const viewer = useViewer();
  const { data, failure, refetch } = useLiveQuery({ query: ProjectsQuery });
  const create = useAction(CreateProject);
  const setMember = useAction(SetMembership, true);
  const remove = useAction(RemoveMembership, true);
  const attach = useAction(AttachPolicy, true);
  const [name, setName] = useState("");
  const { field, rest } = byField(create.failure, ["name"]);
  const projects = (data?.projects.edges ?? []).flatMap((e) => (e?.node ? [e.node] : []));
  const users = (data?.users.edges ?? []).flatMap((e) => (e?.node ? [e.node] : []));
  const policies = (data?.resourcePolicies.edges ?? []).flatMap((e) => (e?.node ? [{ value: e.node.id, label: e.node.name }] : []));

  async function submit(event: React.FormEvent) {
    event.preventDefault();
    if (!(await create.run({ input: { name, domain: viewer.user.domain.id } }))) return;
    setName("");
    refetch();
  }
  return (
    <>
      <div className="page-head">
        <h1>{t("Projects")}</h1>
        <form className="push row" onSubmit={submit}>
          <TextInput aria-label={t("Name of a new project")} placeholder={t("New project")} value={name} error={field.name} onChange={(e) => setName(e.currentTarget.value)} />
          <Button type="submit" variant="default" loading={create.busy} disabled={!name.trim()}>
            {t("Create")}
          </Button>
        </form>
      </div>
      <FailureNote failure={failure ?? rest} />
      {projects.map((p) => {
        const members = new Set(p.memberships.map((m) => m.user.id));
        return (
          <section key={p.id} className="panel" aria-labelledby={`p-${p.id}`}>
            <div className="panel-head">
              <h2 id={`p-${p.id}`}>{p.name}</h2>
              <span className="dim">
                {p.domain.name} {p.active ? "" : t("inactive")} {p.description}
              </span>
              <div className="push row">
                <Select aria-label={t("Policy of {{name}}", { name: p.name })} w={160} value={p.policies[0]?.policy.id ?? ""} data={[{ value: "", label: t("no policy") }, ...policies]}
                  onChange={async (policy) => { if (await attach.run({ input: { project: p.id, policy: policy || null } })) refetch(); }} />
                <Select aria-label={t("Add a member to {{name}}", { name: p.name })} placeholder={t("Add a member")} w={220} searchable value={null}
                  data={users.filter((u) => !members.has(u.id)).map((u) => ({ value: u.id, label: u.email }))}
                  onChange={(user) => user && void setMember.run({ input: { project: p.id, user } })} />
              </div>
            </div>
            <ul className="rows">
              {p.memberships.map((m) => (
                <li key={m.id}>
                  <span className="clip">{m.user.email}</span>
                  <Checkbox className="push" label={t("administers it")} aria-label={t("{{email}} administers {{name}}", { email: m.user.email, name: p.name })} checked={m.admin}
                    onChange={(e) => void setMember.run({ input: { project: p.id, user: m.user.id, admin: e.currentTarget.checked } })} />
                  <Button variant="subtle" color="red" size="compact-xs" aria-label={t("Remove {{email}} from {{name}}", { email: m.user.email, name: p.name })}
                    onClick={() => void remove.run({ input: { project: p.id, user: m.user.id } })}>
                    {t("Remove")}
                  </Button>
                </li>
              ))}
              {p.memberships.length === 0 ? <li className="dim">{t("No members")}</li> : null}
            </ul>
          </section>
        );
      })}
    </>
  );
}
