import { Button, Checkbox, SegmentedControl } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { administers, useViewer } from "../../../hooks/useViewer";
import { t } from "../../../i18n";
import { Confirm } from "../../Confirm";
import { FormDialog } from "../Form";
import { Part, SidePanel } from "../Panel";
import { type Holder, HolderPick } from "./HolderPick";
import { holderOf, holderText } from "./holder";
import { VolumeFacts } from "./VolumeFacts";
import { VolumeOrphans } from "./VolumeOrphans";
import { VolumeScopes } from "./VolumeScopes";
import { atoms, permissionPhrases, type Volume, VolumeFields, type VolumeGrant } from "./volume";

const SetGrant = graphql(
  `mutation GrantVolume($input: GrantVolumeInput!) { grantVolume(input: $input) { grant { id permissions } } }`,
);
const RemoveGrant = graphql(
  `
  mutation RevokeVolume($input: RevokeVolumeInput!) {
    revokeVolume(input: $input) { volume { ...VolumeFields } }
  }
`,
  [VolumeFields],
);

/** Shows one volume, and who has which permissions on its folders. */
export function VolumePanel({ volume, onClose, onDone }: { volume: Volume; onClose: () => void; onDone: () => void }) {
  const viewer = useViewer();
  const editable = volume.permissions.includes("GRANT");
  const { run, busy, failure, clear } = useAction(RemoveGrant);
  const [edited, setEdited] = useState<VolumeGrant | "new" | null>(null);
  const [revoking, setRevoking] = useState<VolumeGrant | null>(null);
  async function remove() {
    if (!revoking || !(await run({ input: { id: revoking.id } }))) return;
    setRevoking(null);
    onDone();
  }
  return (
    <SidePanel title={volume.name} onClose={onClose}>
      <VolumeFacts volume={volume} />
      <VolumeScopes volume={volume} editable={administers(viewer)} />
      <Part
        title={t("Access to its folders")}
        aside={
          editable ? (
            <Button variant="light" onClick={() => setEdited("new")}>
              {t("Grant")}
            </Button>
          ) : null
        }
      >
        <p className="dim">{t("Grants add up. They limit every role, including superadmins.")}</p>
        {volume.grants.length === 0 ? (
          <p className="tone-wait">{t("No one can use it.")}</p>
        ) : (
          <ul className="rows" aria-label={t("Access to its folders")}>
            {volume.grants.map((g) => (
              <li key={g.id}>
                <span>
                  <b>{holderText(g)}</b>{" "}
                  <span className="dim">
                    {permissionPhrases(g.permissions)
                      .map((x) => t(x))
                      .join(", ")}
                  </span>
                </span>
                {editable ? (
                  <span className="push row keep">
                    <Button
                      variant="subtle"
                      size="compact-xs"
                      aria-label={t("Edit the access of {{holder}}", { holder: holderText(g) })}
                      onClick={() => setEdited(g)}
                    >
                      {t("Edit")}
                    </Button>
                    <Button
                      variant="subtle"
                      color="red"
                      size="compact-xs"
                      aria-label={t("Revoke the access of {{holder}}", { holder: holderText(g) })}
                      onClick={() => {
                        clear();
                        setRevoking(g);
                      }}
                    >
                      {t("Revoke")}
                    </Button>
                  </span>
                ) : null}
              </li>
            ))}
          </ul>
        )}
      </Part>
      {viewer.user.role === "SUPERADMIN" ? <VolumeOrphans volume={volume} /> : null}
      {edited ? (
        <GrantDialog
          volume={volume}
          grant={edited === "new" ? null : edited}
          onClose={() => setEdited(null)}
          onDone={onDone}
        />
      ) : null}
      <Confirm
        opened={revoking !== null}
        title={t("Revoke the access?")}
        action={t("Revoke")}
        busy={busy}
        failure={failure}
        onClose={() => setRevoking(null)}
        onConfirm={() => void remove()}
      >
        {revoking
          ? t(
              "{{holder}} loses the permissions on {{volume}} that only this grant gives. Folders and their data stay.",
              { holder: holderText(revoking), volume: volume.name },
            )
          : null}
      </Confirm>
    </SidePanel>
  );
}

function GrantDialog({
  volume,
  grant,
  onClose,
  onDone,
}: {
  volume: Volume;
  grant: VolumeGrant | null;
  onClose: () => void;
  onDone: () => void;
}) {
  const { run, busy, failure } = useAction(SetGrant);
  const was = grant ? holderOf(grant) : null;
  const [everybody, setEverybody] = useState(was?.kind === "everybody");
  const [holder, setHolder] = useState<Holder>(
    was && was.kind !== "everybody" ? { kind: was.kind, id: was.id } : { kind: "project", id: null },
  );
  const [permissions, setPermissions] = useState<string[]>(grant?.permissions ?? ["MOUNT", "DOWNLOAD"]);
  async function submit() {
    const whom = everybody ? {} : { [holder.kind]: holder.id };
    if (
      !(await run({
        input: {
          volume: volume.id,
          ...whom,
          permissions: atoms.map((a) => a.value).filter((a) => permissions.includes(a)),
        },
      }))
    )
      return;
    onDone();
    onClose();
  }
  return (
    <FormDialog
      title={
        grant
          ? t("Access of {{holder}} to {{volume}}", { holder: holderText(grant), volume: volume.name })
          : t("Grant {{name}}", { name: volume.name })
      }
      onClose={onClose}
      onSubmit={() => void submit()}
      submit={grant ? t("Save") : t("Grant")}
      busy={busy}
      failure={failure}
      disabled={!everybody && !holder.id}
      fields={["domain", "project", "user"]}
    >
      {(wrong) => (
        <>
          {grant ? null : (
            <>
              <SegmentedControl
                aria-label={t("Grant to")}
                value={everybody ? "all" : "one"}
                onChange={(v) => setEverybody(v === "all")}
                data={[
                  { value: "one", label: t("One domain, project or user") },
                  { value: "all", label: t("Everyone") },
                ]}
              />
              {everybody ? null : (
                <HolderPick
                  label={t("Grant to")}
                  kinds={["domain", "project", "user"]}
                  value={holder}
                  wrong={wrong}
                  onChange={setHolder}
                />
              )}
            </>
          )}
          <Checkbox.Group label={t("Permissions")} value={permissions} onChange={setPermissions}>
            <div className="pairs" style={{ marginTop: 4 }}>
              {atoms.map((a) => (
                <Checkbox key={a.value} value={a.value} label={t(a.label)} />
              ))}
            </div>
          </Checkbox.Group>
          {grant ? null : <p className="dim">{t("It replaces an existing grant to the same target.")}</p>}
        </>
      )}
    </FormDialog>
  );
}
