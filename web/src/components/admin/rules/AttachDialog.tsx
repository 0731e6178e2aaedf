import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { useViewer } from "../../../hooks/useViewer";
import { t } from "../../../i18n";
import { FormDialog } from "../Form";
import { GroupPick, PolicyPick, ProjectPick } from "../Pickers";
import { AttachmentFields } from "./attachment";
import { type Holder, HolderPick } from "./HolderPick";
import { attachableHolders } from "./rights";

const Attach = graphql(
  `
  mutation AttachResourcePolicy($input: AttachResourcePolicyInput!) {
    attachResourcePolicy(input: $input) { attachment { ...AttachmentFields } }
  }
`,
  [AttachmentFields],
);

interface Props {
  /** Null lets the user choose a policy, or none, which detaches the current one. */
  policy: { id: string; name: string } | null;
  holder?: Holder & { name: string };
  onClose: () => void;
  onDone: () => void;
}

/** Attaches a policy to a holder. It replaces the holder's policy for the same project and resource group. */
export function AttachDialog({ policy, holder: fixed, onClose, onDone }: Props) {
  const kinds = attachableHolders(useViewer());
  const { run, busy, failure } = useAction(Attach);
  const [chosen, setChosen] = useState<string | null>(policy?.id ?? null);
  const [holder, setHolder] = useState<Holder>(
    fixed ?? { kind: kinds.includes("user") ? "user" : "project", id: null },
  );
  const [resourceGroup, setGroup] = useState<string | null>(null);
  const [withinProject, setWithin] = useState<string | null>(null);

  async function submit() {
    const narrowed = { resourceGroup, ...(holder.kind === "user" ? { withinProject } : {}) };
    if (!(await run({ input: { policy: chosen, [holder.kind]: holder.id, ...narrowed } }))) return;
    onDone();
    onClose();
  }
  return (
    <FormDialog
      title={
        fixed ? t("Policy for {{name}}", { name: fixed.name }) : t("Attach {{name}}", { name: policy?.name ?? "" })
      }
      onClose={onClose}
      onSubmit={() => void submit()}
      submit={chosen ? t("Attach") : t("Detach")}
      busy={busy}
      failure={failure}
      disabled={!holder.id}
      fields={["policy", "domain", "project", "user", "keypair", "resourceGroup", "withinProject"]}
    >
      {(wrong) => (
        <>
          {policy ? null : (
            <PolicyPick
              label={t("Policy")}
              placeholder={t("None: detach the current policy")}
              value={chosen}
              error={wrong.policy}
              onChange={setChosen}
            />
          )}
          {fixed && fixed.kind !== "keypair" ? null : (
            <HolderPick
              label={t("Attach to")}
              kinds={kinds}
              value={holder}
              wrong={wrong}
              onChange={(h) => {
                setHolder(h);
                if (h.kind !== "user") setWithin(null);
              }}
            />
          )}
          <GroupPick
            label={t("Only in the resource group")}
            placeholder={t("All")}
            value={resourceGroup}
            error={wrong.resourceGroup}
            onChange={setGroup}
          />
          {holder.kind === "user" ? (
            <ProjectPick
              label={t("Only in the project")}
              placeholder={t("All projects")}
              value={withinProject}
              error={wrong.withinProject}
              onChange={setWithin}
            />
          ) : null}
          <p className="dim">
            {t(
              "It replaces a policy that is attached to the same target with the same resource group and project. Running sessions are not affected.",
            )}
          </p>
        </>
      )}
    </FormDialog>
  );
}
