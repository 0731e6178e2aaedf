import { Button, Modal, TextInput } from "@mantine/core";
import { useState } from "react";
import { byField } from "../../api/errors";
import { type ResultOf, graphql } from "../../api/graphql";
import { Empty, FailureNote } from "../../components/Note";
import { bytes, slotsLine } from "../../components/format";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { type Draft, draftOf, parseDraft } from "./draft";

const PoliciesQuery = graphql(`
  query Policies {
    resourcePolicies(first: 100, orderBy: [{ field: NAME, direction: ASC }]) {
      edges { node { id name totalSlots maxSessions maxPendingSessions maxVfolders maxScopeBytes } }
    }
  }
`);
const CreatePolicy = graphql(`mutation CreatePolicy($input: CreateResourcePolicyInput!) { createResourcePolicy(input: $input) { policy { id name } } }`);
const UpdatePolicy = graphql(`
  mutation UpdatePolicy($input: UpdateResourcePolicyInput!) {
    updateResourcePolicy(input: $input) { policy { id name totalSlots maxSessions maxPendingSessions maxVfolders maxScopeBytes } }
  }
`);

type Policy = NonNullable<NonNullable<NonNullable<ResultOf<typeof PoliciesQuery>["resourcePolicies"]["edges"]>[number]>["node"]>;

export function Policies() {
  const superadmin = useViewer().user.role === "superadmin";
  const { data, failure, refetch } = useLiveQuery({ query: PoliciesQuery });
  const [edited, setEdited] = useState<Policy | "new" | null>(null);
  const rows = (data?.resourcePolicies.edges ?? []).flatMap((e) => (e?.node ? [e.node] : []));
  const limit = (n: number | null) => n ?? <span className="dim">–</span>;
  return (
    <>
      <div className="page-head">
        <h1>{t("Policies")}</h1>
        <span className="dim">{t("limits for domains, projects and users")}</span>
        {superadmin ? (
          <Button className="push" variant="default" onClick={() => setEdited("new")}>
            {t("New policy")}
          </Button>
        ) : null}
      </div>
      <FailureNote failure={failure} />
      <div className="panel scroll-x">
        {data && rows.length === 0 ? <Empty title={t("No policies")}>{t("Without one, only the size of the cluster limits people.")}</Empty> : (
          <table className="grid">
            <thead>
              <tr>
                <th>{t("Policy")}</th>
                <th>{t("Held at once")}</th>
                <th className="num">{t("Sessions")}</th>
                <th className="num">{t("Waiting")}</th>
                <th className="num">{t("Folders")}</th>
                <th className="num">{t("Storage")}</th>
                <th><span className="dim">{t("Actions")}</span></th>
              </tr>
            </thead>
            <tbody>
              {rows.map((p) => (
                <tr key={p.id}>
                  <td><b>{p.name}</b></td>
                  <td>{slotsLine(p.totalSlots) || <span className="dim">{t("no limit")}</span>}</td>
                  <td className="num">{limit(p.maxSessions)}</td>
                  <td className="num">{limit(p.maxPendingSessions)}</td>
                  <td className="num">{limit(p.maxVfolders)}</td>
                  <td className="num">{p.maxScopeBytes === null ? <span className="dim">–</span> : bytes(p.maxScopeBytes)}</td>
                  <td style={{ width: 1 }}>
                    <Button variant="subtle" size="compact-xs" disabled={!superadmin} aria-label={t("Change {{name}}", { name: p.name })} onClick={() => setEdited(p)}>
                      {t("Change")}
                    </Button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </div>
      {edited ? <Edit policy={edited === "new" ? null : edited} onClose={() => setEdited(null)} onDone={refetch} /> : null}
    </>
  );
}

function Edit({ policy, onClose, onDone }: { policy: Policy | null; onClose: () => void; onDone: () => void }) {
  const [draft, setDraft] = useState<Draft>(draftOf(policy));
  const create = useAction(CreatePolicy);
  const update = useAction(UpdatePolicy);
  const { field, rest } = byField(create.failure ?? update.failure, ["name", "totalSlots", "maxSessions", "maxPendingSessions", "maxVfolders", "maxScopeBytes"]);
  const { wrong, limits } = parseDraft(draft);
  const input = (key: keyof Draft, label: string, hint?: string) => (
    <TextInput label={label} description={hint} value={draft[key]} error={wrong[key] ? t(wrong[key]) : field[key]}
      onChange={(e) => setDraft({ ...draft, [key]: e.currentTarget.value })} />
  );
  async function submit(event: React.FormEvent) {
    event.preventDefault();
    const done = policy ? await update.run({ input: { id: policy.id, ...limits } }) : await create.run({ input: { name: draft.name.trim(), ...limits } });
    if (!done) return;
    onDone();
    onClose();
  }
  return (
    <Modal opened onClose={onClose} title={<h2>{policy ? policy.name : t("New policy")}</h2>} closeButtonProps={{ "aria-label": t("Close") }}>
      <form className="stack" onSubmit={submit}>
        {policy ? null : input("name", t("Name"))}
        {input("totalSlots", t("Held at once"), t("For example cpu=8 mem=32g cuda.shares=2; empty is no limit"))}
        {input("maxSessions", t("Sessions at once"))}
        {input("maxPendingSessions", t("Sessions that wait"))}
        {input("maxVfolders", t("Folders"))}
        {input("maxScopeBytes", t("Storage"), t("For example 100g"))}
        <FailureNote failure={rest} />
        <Button type="submit" loading={create.busy || update.busy} disabled={Object.keys(wrong).length > 0 || (!policy && !draft.name.trim())}>
          {policy ? t("Save") : t("Create")}
        </Button>
      </form>
    </Modal>
  );
}
