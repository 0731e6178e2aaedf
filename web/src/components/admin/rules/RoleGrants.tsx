import { Button, SegmentedControl, Select } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { useNames } from "../../../hooks/useNames";
import { t } from "../../../i18n";
import { word } from "../../../words";
import { Confirm } from "../../Confirm";
import { FormDialog } from "../Form";
import { Part } from "../Panel";
import { DomainPick, ProjectPick, UserPick } from "../Pickers";
import { ObjectPick } from "./ObjectPick";
import { type Entity, type Role, RoleFields, type Scope, single } from "./role";
import { entityName } from "./TrailFilters";

const GrantRole = graphql(
  `mutation GrantRole($input: GrantRoleInput!) { grantRole(input: $input) { grant { id role { ...RoleFields } } } }`,
  [RoleFields],
);
const RevokeRole = graphql(
  `mutation RevokeRole($input: RevokeRoleInput!) { revokeRole(input: $input) { role { ...RoleFields } } }`,
  [RoleFields],
);

type Grant = Role["grants"][number];

const phrases: Record<Scope, string> = {
  SYSTEM: "everywhere",
  DOMAIN: "in domain {{name}}",
  PROJECT: "in project {{name}}",
  OBJECT: "on {{name}}",
};

/** Shows who has a role, and in which scope. */
export function RoleGrants({ role, onDone }: { role: Role; onDone: () => void }) {
  const editable = role.permissions.includes("GRANT");
  const names = useNames(role.grants.map((g) => g.scopeId));
  const { run, busy, failure, clear } = useAction(RevokeRole);
  const [granting, setGranting] = useState(false);
  const [revoking, setRevoking] = useState<Grant | null>(null);
  const place = (g: Grant) => t(phrases[g.scope], { name: names[g.scopeId ?? ""] || (g.scopeId ?? "") });
  async function revoke() {
    if (!revoking || !(await run({ input: { id: revoking.id } }))) return;
    setRevoking(null);
    onDone();
  }
  return (
    <Part
      title={t("Granted to")}
      aside={
        editable ? (
          <Button variant="light" onClick={() => setGranting(true)}>
            {t("Grant")}
          </Button>
        ) : null
      }
    >
      {role.grants.length === 0 ? (
        <p className="dim">{t("None that you can see.")}</p>
      ) : (
        <ul className="rows tall" tabIndex={role.grants.length > 9 ? 0 : undefined} aria-label={t("Granted to")}>
          {role.grants.map((g) => (
            <li key={g.id}>
              <span>
                {g.user.email} <span className="dim">{place(g)}</span>
              </span>
              {editable ? (
                <Button
                  className="push"
                  variant="subtle"
                  color="red"
                  size="compact-xs"
                  aria-label={t("Revoke from {{email}} {{place}}", { email: g.user.email, place: place(g) })}
                  onClick={() => {
                    clear();
                    setRevoking(g);
                  }}
                >
                  {t("Revoke")}
                </Button>
              ) : null}
            </li>
          ))}
        </ul>
      )}
      {granting ? <GrantDialog role={role} onClose={() => setGranting(false)} onDone={onDone} /> : null}
      <Confirm
        opened={revoking !== null}
        title={t("Revoke the role?")}
        action={t("Revoke")}
        busy={busy}
        failure={failure}
        onClose={() => setRevoking(null)}
        onConfirm={() => void revoke()}
      >
        {revoking
          ? t("{{email}} loses the role {{role}} {{place}} at once.", {
              email: revoking.user.email,
              role: role.name,
              place: place(revoking),
            })
          : null}
      </Confirm>
    </Part>
  );
}

function GrantDialog({ role, onClose, onDone }: { role: Role; onClose: () => void; onDone: () => void }) {
  const { run, busy, failure } = useAction(GrantRole);
  const kinds = role.allows.map((a) => a.entity).filter((e) => single.has(e));
  const [user, setUser] = useState<string | null>(null);
  const [scope, setScope] = useState<Scope>("PROJECT");
  const [kind, setKind] = useState<Entity | null>(kinds[0] ?? null);
  const [on, setOn] = useState<string | null>(null);
  async function submit() {
    if (!user || !(await run({ input: { role: role.id, user, scope, scopeId: scope === "SYSTEM" ? null : on } })))
      return;
    onDone();
    onClose();
  }
  const scopes = [
    { value: "SYSTEM", label: word("RoleScope", "SYSTEM") },
    { value: "DOMAIN", label: word("RoleScope", "DOMAIN") },
    { value: "PROJECT", label: word("RoleScope", "PROJECT") },
    ...(kinds.length > 0 ? [{ value: "OBJECT", label: word("RoleScope", "OBJECT") }] : []),
  ];
  return (
    <FormDialog
      title={t("Grant {{name}}", { name: role.name })}
      onClose={onClose}
      onSubmit={() => void submit()}
      submit={t("Grant")}
      busy={busy}
      failure={failure}
      disabled={!user || (scope !== "SYSTEM" && !on)}
      fields={["user", "scopeId", "scope"]}
    >
      {(wrong) => (
        <>
          <UserPick label={t("Grant to")} required value={user} error={wrong.user} onChange={setUser} />
          <fieldset className="legendless">
            <legend>{t("Scope")}</legend>
            <SegmentedControl
              aria-label={t("Scope")}
              data={scopes}
              value={scope}
              onChange={(v) => {
                setScope(v as Scope);
                setOn(null);
              }}
            />
          </fieldset>
          {scope === "DOMAIN" ? (
            <DomainPick label={t("Domain")} required value={on} error={wrong.scopeId} onChange={setOn} />
          ) : null}
          {scope === "PROJECT" ? (
            <ProjectPick label={t("Project")} required value={on} error={wrong.scopeId} onChange={setOn} />
          ) : null}
          {scope === "OBJECT" && kind ? (
            <div className="pair">
              <Select
                label={t("Type")}
                allowDeselect={false}
                data={kinds.map((k) => ({ value: k, label: entityName(k) }))}
                value={kind}
                onChange={(k) => {
                  setKind(k as Entity);
                  setOn(null);
                }}
              />
              <ObjectPick
                key={kind}
                kind={kind}
                label={t("Object")}
                value={on}
                error={wrong.scopeId}
                onChange={setOn}
              />
            </div>
          ) : null}
        </>
      )}
    </FormDialog>
  );
}
