import { Button } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { t } from "../../../i18n";
import { Form } from "../Form";
import { Part } from "../Panel";
import { GroupPick, PolicyPick, ProjectPick } from "../Pickers";

const AttachPolicy = graphql(`
  mutation AttachPolicyTo($input: AttachResourcePolicyInput!) { attachResourcePolicy(input: $input) { attachment { id } } }
`);
const DetachPolicy = graphql(`
  mutation DetachPolicyFrom($input: DetachResourcePolicyInput!) { detachResourcePolicy(input: $input) { id } }
`);

export interface Attached {
  id: string;
  policy: { id: string; name: string };
  resourceGroup: { id: string; name: string } | null;
  withinProject: { id: string; name: string } | null;
}

interface Props {
  /** Whom the policies bind: exactly one. */
  holder: { domain?: string; project?: string; user?: string };
  attached: Attached[];
  mayChange: boolean;
  onChanged: () => void;
}

/** The policies that are attached to somebody, each perhaps to a part of what he does. */
export function Attachments({ holder, attached, mayChange, onChanged }: Props) {
  const detach = useAction(DetachPolicy, true);
  const [adding, setAdding] = useState(false);
  return (
    <Part title={t("Policies")} aside={mayChange && !adding ? <Button variant="default" size="compact-sm" onClick={() => setAdding(true)}>{t("Attach a policy")}</Button> : null}>
      {attached.length === 0 ? <p className="dim">{t("None is attached here.")}</p> : (
        <ul className="rows">
          {attached.map((a) => (
            <li key={a.id}>
              <b>{a.policy.name}</b>
              <span className="dim">{narrowing(a)}</span>
              {mayChange ? (
                <Button className="push" variant="subtle" color="red" size="compact-xs" aria-label={t("Detach {{name}}", { name: a.policy.name })}
                  onClick={async () => { if (await detach.run({ input: { id: a.id } })) onChanged(); }}>
                  {t("Detach")}
                </Button>
              ) : null}
            </li>
          ))}
        </ul>
      )}
      {adding ? <Add holder={holder} onClose={() => setAdding(false)} onChanged={onChanged} /> : null}
    </Part>
  );
}

function narrowing(a: Attached): string {
  const parts = [
    a.resourceGroup ? t("in resource group {{name}}", { name: a.resourceGroup.name }) : "",
    a.withinProject ? t("within project {{name}}", { name: a.withinProject.name }) : "",
  ];
  return parts.filter(Boolean).join(", ") || t("everywhere");
}

function Add({ holder, onClose, onChanged }: Pick<Props, "holder" | "onChanged"> & { onClose: () => void }) {
  const { run, busy, failure } = useAction(AttachPolicy);
  const [policy, setPolicy] = useState<string | null>(null);
  const [resourceGroup, setGroup] = useState<string | null>(null);
  const [withinProject, setProject] = useState<string | null>(null);
  return (
    <div className="panel pad">
      <Form failure={failure} fields={["policy", "resourceGroup", "withinProject"]} submit={t("Attach")} busy={busy} disabled={!policy} onCancel={onClose}
        onSubmit={async () => {
          if (!(await run({ input: { ...holder, policy, resourceGroup, withinProject } }))) return;
          onChanged();
          onClose();
        }}>
        {(wrong) => (
          <>
            <PolicyPick label={t("Policy")} required value={policy} error={wrong.policy} onChange={setPolicy} />
            <GroupPick label={t("Only in resource group")} placeholder={t("everywhere")} value={resourceGroup} error={wrong.resourceGroup} onChange={setGroup} />
            {holder.user ? <ProjectPick label={t("Only within project")} placeholder={t("in all projects")} value={withinProject} error={wrong.withinProject} onChange={setProject} /> : null}
            <p className="dim">{t("It takes the place of a policy that is narrowed in the same way. What runs goes on.")}</p>
          </>
        )}
      </Form>
    </div>
  );
}
