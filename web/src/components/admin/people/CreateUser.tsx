import { Checkbox, Modal, PasswordInput, SegmentedControl, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { useFocusBack } from "../../../hooks/useFocusBack";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { toast } from "../../../hooks/useToasts";
import { useViewer } from "../../../hooks/useViewer";
import { t } from "../../../i18n";
import type { Option } from "../Filter";
import { Form } from "../Form";
import { hasPermission, isSuper } from "../nav";
import { DomainPick, PolicyPick, ProjectsPick } from "../Pickers";
import { makePassword } from "./password";
import { grantableRoles, roleNames } from "./rights";
import { ShownOnce } from "./ShownOnce";
import { type Role, UpdateUser } from "./userdraft";

const Create = graphql(
  `mutation CreateUser($input: CreateUserInput!) { createUser(input: $input) { user { id email } } }`,
);
const RulesQuery = graphql(
  `query PasswordRulesOf($domain: ID!) { node(id: $domain) { id ... on Domain { name passwordMinLength } } }`,
);

interface Props {
  domain: string;
  onClose: () => void;
  onDone: () => void;
}

/** Creates a user. A generated password is shown once. */
export function CreateUser({ domain: first, onClose, onDone }: Props) {
  useFocusBack();
  const viewer = useViewer();
  const create = useAction(Create);
  const update = useAction(UpdateUser);
  const [person, setPerson] = useState({ email: "", fullName: "", username: "", role: "USER" as Role });
  const [domain, setDomain] = useState(first);
  const [projects, setProjects] = useState<Option[]>([]);
  const [policy, setPolicy] = useState<string | null>(null);
  const [how, setHow] = useState("made");
  const [typed, setTyped] = useState("");
  const [renew, setRenew] = useState(true);
  const [made, setMade] = useState<{ email: string; password: string } | null>(null);
  const { data } = useLiveQuery({ query: RulesQuery, variables: { domain } });
  const rules = data?.node && "passwordMinLength" in data.node ? data.node : null;
  const set = (more: Partial<typeof person>) => setPerson({ ...person, ...more });

  async function submit() {
    const password = how === "made" ? makePassword(rules?.passwordMinLength) : typed;
    const done = await create.run({
      input: {
        ...person,
        username: person.username || null,
        password,
        domain,
        projects: projects.map((p) => p.value),
        policy,
      },
    });
    if (!done) return;
    const { id, email } = done.createUser.user;
    if (renew) await update.run({ input: { id, passwordChangeRequired: true } });
    onDone();
    if (how === "made") setMade({ email, password });
    else {
      toast({ text: t("{{name}} can log in now.", { name: email }) });
      onClose();
    }
  }
  return (
    <Modal
      opened
      onClose={onClose}
      closeOnClickOutside={false}
      size={560}
      title={t("New user")}
      closeButtonProps={{ "aria-label": t("Close") }}
    >
      {made ? (
        <ShownOnce
          text={t("{{name}} can log in with this password. It is shown only now.", { name: made.email })}
          secret={made.password}
          onClose={onClose}
        />
      ) : (
        <Form
          failure={create.failure}
          fields={["email", "username", "fullName", "password", "role", "domain", "projects", "policy"]}
          submit={t("Create")}
          busy={create.busy || update.busy}
          disabled={!person.email || (how === "typed" && !typed)}
          onSubmit={() => void submit()}
          onCancel={onClose}
        >
          {(wrong) => (
            <>
              <TextInput
                label={t("E-mail")}
                type="email"
                required
                data-autofocus
                value={person.email}
                error={wrong.email}
                onChange={(e) => set({ email: e.currentTarget.value })}
              />
              <div className="pair">
                <TextInput
                  label={t("Full name")}
                  value={person.fullName}
                  error={wrong.fullName}
                  onChange={(e) => set({ fullName: e.currentTarget.value })}
                />
                <TextInput
                  label={t("Username")}
                  placeholder={t("derived from the e-mail")}
                  value={person.username}
                  error={wrong.username}
                  onChange={(e) => set({ username: e.currentTarget.value })}
                />
              </div>
              <div className="pair">
                {isSuper(viewer) || hasPermission(viewer, "CREATE", "USER") ? (
                  <DomainPick
                    label={t("Domain")}
                    required
                    value={domain}
                    chosen={
                      rules
                        ? { value: domain, label: rules.name }
                        : { value: viewer.user.domain.id, label: viewer.user.domain.name }
                    }
                    error={wrong.domain}
                    onChange={(id) => {
                      if (id) {
                        setDomain(id);
                        setProjects([]);
                      }
                    }}
                  />
                ) : null}
                <Select
                  label={t("Role")}
                  data={grantableRoles(viewer).map((value) => ({ value, label: t(roleNames[value]) }))}
                  value={person.role}
                  error={wrong.role}
                  onChange={(role) => role && set({ role: role as Role })}
                />
              </div>
              <ProjectsPick
                label={t("Projects")}
                domain={domain}
                value={projects}
                error={wrong.projects}
                onChange={setProjects}
              />
              <PolicyPick
                label={t("Policy")}
                placeholder={t("none")}
                value={policy}
                error={wrong.policy}
                onChange={setPolicy}
              />
              <div className="stack small">
                <SegmentedControl
                  aria-label={t("Initial password")}
                  value={how}
                  onChange={setHow}
                  data={[
                    { value: "made", label: t("Generate a password") },
                    { value: "typed", label: t("Enter a password") },
                  ]}
                />
                {how === "typed" ? (
                  <PasswordInput
                    label={t("Initial password")}
                    description={
                      rules ? t("At least {{count}} characters", { count: rules.passwordMinLength }) : undefined
                    }
                    required
                    autoComplete="new-password"
                    value={typed}
                    error={wrong.password}
                    onChange={(e) => setTyped(e.currentTarget.value)}
                  />
                ) : wrong.password ? (
                  <p className="bad" role="alert">
                    {wrong.password}
                  </p>
                ) : null}
              </div>
              <Checkbox
                label={t("Require a password change")}
                checked={renew}
                onChange={(e) => setRenew(e.currentTarget.checked)}
              />
            </>
          )}
        </Form>
      )}
    </Modal>
  );
}
