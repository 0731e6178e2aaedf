import { Button, Modal, PasswordInput, Select, TextInput } from "@mantine/core";
import { useDebouncedValue, useDisclosure } from "@mantine/hooks";
import { useState } from "react";
import { byField } from "../../api/errors";
import { graphql } from "../../api/graphql";
import { Empty, FailureNote } from "../../components/Note";
import { shortest } from "../../components/PasswordDialog";
import { when } from "../../components/format";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";

const UsersQuery = graphql(`
  query Users($where: UserWhereInput) {
    users(first: 100, where: $where, orderBy: [{ field: EMAIL, direction: ASC }]) {
      totalCount
      edges { node { id email username fullName role status lastLoginAt domain { id name } policies { id policy { id name } } } }
    }
    domains(first: 100) { edges { node { id name } } }
    projects(first: 100) { edges { node { id name } } }
    resourcePolicies(first: 100) { edges { node { id name } } }
  }
`);
const CreateUser = graphql(`mutation CreateUser($input: CreateUserInput!) { createUser(input: $input) { user { id email } } }`);
const UpdateUser = graphql(`
  mutation UpdateUser($input: UpdateUserInput!) { updateUser(input: $input) { user { id role status fullName policies { id policy { id name } } } } }
`);

const roles = ["user", "admin", "superadmin", "monitor"] as const;
const statuses = ["active", "inactive", "deleted"] as const;

export function Users() {
  const viewer = useViewer();
  const [typed, setTyped] = useState("");
  const [q] = useDebouncedValue(typed, 200);
  const { data, failure, refetch } = useLiveQuery({ query: UsersQuery, variables: { where: q ? { or: [{ emailContainsFold: q }, { fullNameContainsFold: q }] } : null } });
  const update = useAction(UpdateUser, true);
  const [creating, create] = useDisclosure(false);
  const rows = (data?.users.edges ?? []).flatMap((e) => (e?.node ? [e.node] : []));
  const options = (edges: ({ node: { id: string; name: string } | null } | null)[] | null | undefined) =>
    (edges ?? []).flatMap((e) => (e?.node ? [{ value: e.node.id, label: e.node.name }] : []));
  const policies = options(data?.resourcePolicies.edges);

  return (
    <>
      <div className="page-head">
        <h1>{t("Users")}</h1>
        <span className="dim">{data?.users.totalCount}</span>
        <div className="push row">
          <TextInput data-filter placeholder={t("Filter by e-mail or name  /")} aria-label={t("Filter by e-mail or name")} w={220} value={typed} onChange={(e) => setTyped(e.currentTarget.value)} />
          <Button variant="default" onClick={create.open}>
            {t("New user")}
          </Button>
        </div>
      </div>
      <FailureNote failure={failure} />
      {data && rows.length === 0 ? <div className="panel"><Empty title={t("No user matches")} /></div> : null}
      {rows.length > 0 ? (
        <div className="panel scroll-x">
          <table className="grid">
            <thead>
              <tr>
                <th>{t("E-mail")}</th>
                <th>{t("Name")}</th>
                <th>{t("Domain")}</th>
                <th>{t("Role")}</th>
                <th>{t("Status")}</th>
                <th>{t("Policy")}</th>
                <th>{t("Last login")}</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((u) => {
                const self = u.id === viewer.user.id;
                return (
                  <tr key={u.id}>
                    <td className="clip">{u.email}</td>
                    <td className="clip">{u.fullName || u.username}</td>
                    <td>{u.domain.name}</td>
                    <td>
                      <Select aria-label={t("Role of {{email}}", { email: u.email })} w={120} value={u.role} data={[...roles]} disabled={self}
                        onChange={(role) => void update.run({ input: { id: u.id, role: role as (typeof roles)[number] } })} />
                    </td>
                    <td>
                      <Select aria-label={t("Status of {{email}}", { email: u.email })} w={110} value={u.status} data={[...new Set([...statuses, u.status])]} disabled={self}
                        onChange={(status) => void update.run({ input: { id: u.id, status: status as (typeof statuses)[number] } })} />
                    </td>
                    <td>
                      <Select aria-label={t("Policy of {{email}}", { email: u.email })} w={140} value={u.policies[0]?.policy.id ?? ""} data={[{ value: "", label: t("none") }, ...policies]}
                        onChange={(policy) => void update.run({ input: policy ? { id: u.id, policy } : { id: u.id, clearPolicy: true } })} />
                    </td>
                    <td className="dim nowrap">{u.lastLoginAt ? when(u.lastLoginAt) : t("never")}</td>
                  </tr>
                );
              })}
            </tbody>
          </table>
        </div>
      ) : null}
      {creating ? <Create domains={options(data?.domains.edges)} projects={options(data?.projects.edges)} onClose={create.close} onCreated={refetch} /> : null}
    </>
  );
}

interface CreateProps {
  domains: { value: string; label: string }[];
  projects: { value: string; label: string }[];
  onClose: () => void;
  onCreated: () => void;
}

function Create({ domains, projects, onClose, onCreated }: CreateProps) {
  const viewer = useViewer();
  const [user, setUser] = useState({ email: "", fullName: "", password: "", role: "user", domain: viewer.user.domain.id, project: viewer.projects[0]?.id ?? "" });
  const { run, busy, failure } = useAction(CreateUser);
  const { field, rest } = byField(failure, ["email", "username", "fullName", "password", "role", "domain", "projects"]);
  const set = (more: Partial<typeof user>) => setUser({ ...user, ...more });

  async function submit(event: React.FormEvent) {
    event.preventDefault();
    const { project, role, ...plain } = user;
    const done = await run({ input: { ...plain, role: role as (typeof roles)[number], projects: project ? [project] : [] } });
    if (!done) return;
    onCreated();
    onClose();
  }
  return (
    <Modal opened onClose={onClose} title={<h2>{t("New user")}</h2>} closeButtonProps={{ "aria-label": t("Close") }}>
      <form className="stack" onSubmit={submit}>
        <TextInput label={t("E-mail")} type="email" required data-autofocus value={user.email} error={field.email ?? field.username} onChange={(e) => set({ email: e.currentTarget.value })} />
        <TextInput label={t("Full name")} value={user.fullName} error={field.fullName} onChange={(e) => set({ fullName: e.currentTarget.value })} />
        <PasswordInput label={t("First password")} description={t("At least {{count}} characters", { count: shortest })} required minLength={shortest} autoComplete="new-password"
          value={user.password} error={field.password} onChange={(e) => set({ password: e.currentTarget.value })} />
        <Select label={t("Role")} data={[...roles]} value={user.role} error={field.role} onChange={(role) => role && set({ role })} />
        <Select label={t("Domain")} data={domains} value={user.domain} error={field.domain} onChange={(domain) => domain && set({ domain })} />
        <Select label={t("Project")} data={[{ value: "", label: t("none") }, ...projects]} value={user.project} error={field.projects} onChange={(project) => set({ project: project ?? "" })} />
        <FailureNote failure={rest} />
        <Button type="submit" loading={busy} disabled={!user.email || user.password.length < shortest}>
          {t("Create")}
        </Button>
      </form>
    </Modal>
  );
}
