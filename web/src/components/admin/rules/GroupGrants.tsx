import { Button } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { t } from "../../../i18n";
import { Confirm } from "../../Confirm";
import { FormDialog } from "../Form";
import { Part } from "../Panel";
import { type Group, GroupFields } from "./group";
import { type Holder, HolderPick } from "./HolderPick";
import { type Holding, holderOf, holderText } from "./holder";

const Grant = graphql(
  `
  mutation GrantGroup($input: GrantResourceGroupInput!) {
    grantResourceGroup(input: $input) { resourceGroup { ...GroupFields } }
  }
`,
  [GroupFields],
);
const Revoke = graphql(
  `
  mutation RevokeGroup($input: RevokeResourceGroupInput!) {
    revokeResourceGroup(input: $input) { resourceGroup { ...GroupFields } }
  }
`,
  [GroupFields],
);

const kinds = ["domain", "project", "user", "keypair"] as const;

/** Shows to whom a group is granted, with buttons to grant and revoke. */
export function GroupGrants({ group, onDone }: { group: Group; onDone: () => void }) {
  const grants = group.permissions.includes("GRANT");
  const { run, busy, failure, clear } = useAction(Revoke);
  const [granting, setGranting] = useState(false);
  const [revoking, setRevoking] = useState<Holding | null>(null);
  async function revoke() {
    if (!revoking) return;
    const { kind, id } = holderOf(revoking);
    if (!(await run({ input: { resourceGroup: group.id, [kind]: id } }))) return;
    setRevoking(null);
    onDone();
  }
  return (
    <Part
      title={t("Granted to")}
      aside={
        grants ? (
          <Button variant="light" onClick={() => setGranting(true)}>
            {t("Grant")}
          </Button>
        ) : null
      }
    >
      {group.public ? (
        <p className="dim">{t("The group is open to everyone. Grants take effect only if you change that.")}</p>
      ) : null}
      {group.grants.length === 0 ? (
        <p className="dim">{t("None that you can see.")}</p>
      ) : (
        <ul className="rows" aria-label={t("Granted to")}>
          {group.grants.map((g) => (
            <li key={g.id}>
              <span>{holderText(g)}</span>
              {grants ? (
                <Button
                  className="push"
                  variant="subtle"
                  color="red"
                  size="compact-xs"
                  aria-label={t("Revoke from {{holder}}", { holder: holderText(g) })}
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
      {granting ? <GrantDialog group={group} onClose={() => setGranting(false)} onDone={onDone} /> : null}
      <Confirm
        opened={revoking !== null}
        title={t("Revoke the grant?")}
        action={t("Revoke")}
        busy={busy}
        failure={failure}
        onClose={() => setRevoking(null)}
        onConfirm={() => void revoke()}
      >
        {revoking
          ? t(
              "{{holder}} can no longer start sessions in {{group}} with this grant. Running sessions are not affected.",
              { holder: holderText(revoking), group: group.name },
            )
          : null}
      </Confirm>
    </Part>
  );
}

function GrantDialog({ group, onClose, onDone }: { group: Group; onClose: () => void; onDone: () => void }) {
  const { run, busy, failure } = useAction(Grant);
  const [holder, setHolder] = useState<Holder>({ kind: "project", id: null });
  async function submit() {
    if (!(await run({ input: { resourceGroup: group.id, [holder.kind]: holder.id } }))) return;
    onDone();
    onClose();
  }
  return (
    <FormDialog
      title={t("Grant {{name}}", { name: group.name })}
      onClose={onClose}
      onSubmit={() => void submit()}
      submit={t("Grant")}
      busy={busy}
      failure={failure}
      disabled={!holder.id}
      fields={kinds}
    >
      {(wrong) => <HolderPick label={t("Grant to")} kinds={kinds} value={holder} wrong={wrong} onChange={setHolder} />}
    </FormDialog>
  );
}
