import { Button, Checkbox } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { t } from "../../../i18n";
import { FailureNote } from "../../Note";
import { FormDialog } from "../Form";
import { Part } from "../Panel";
import { type Atom, atoms, permissionPhrases, type Volume, VolumeFields } from "../rules/volume";
import { nodesOf } from "../usePages";
import { can } from "./rights";
import { grantsTo } from "./volumes";

const VolumesQuery = graphql(
  `query VolumesFor { volumes(first: 100, orderBy: [{ field: NAME }]) { edges { node { ...VolumeFields } } } }`,
  [VolumeFields],
);
const SetGrant = graphql(
  `mutation GrantVolume($input: GrantVolumeInput!) { grantVolume(input: $input) { grant { id permissions } } }`,
);
const RemoveGrant = graphql(
  `mutation UngrantVolume($input: RevokeVolumeInput!) { revokeVolume(input: $input) { volume { id } } }`,
);

const permissionText = (list: readonly Atom[]) =>
  permissionPhrases(list)
    .map((x) => t(x))
    .join(", ");

export interface VolumeHolder {
  kind: "domain" | "project" | "user";
  id: string;
  name: string;
}

/** Shows the permissions of a domain, project or user on the folders of each volume. */
export function VolumeAccess({ holder }: { holder: VolumeHolder }) {
  const { data, failure, refetch } = useLiveQuery({ query: VolumesQuery });
  const [edited, setEdited] = useState<Volume | null>(null);
  return (
    <Part title={t("Allowed volumes")}>
      <FailureNote failure={failure} />
      <p className="dim">{t("Grants to everyone, the domain, the project and the user add up.")}</p>
      {data ? (
        <ul className="rows">
          {nodesOf(data.volumes).map((v) => {
            const { own, everybody } = grantsTo(v.grants, holder);
            return (
              <li key={v.id}>
                <span style={{ minWidth: 0, flex: 1 }}>
                  <b>{v.name}</b> <span className="dim">{v.backend}</span>
                  <div>
                    {own ? permissionText(own.permissions) : <span className="dim">{t("no grants of its own")}</span>}
                  </div>
                  {everybody ? (
                    <div className="dim">
                      {t("everyone: {{what}}", { what: permissionText(everybody.permissions) })}
                    </div>
                  ) : null}
                </span>
                {can(v, "GRANT") ? (
                  <Button
                    variant="default"
                    size="compact-xs"
                    aria-label={t("Edit the access to {{name}}", { name: v.name })}
                    onClick={() => setEdited(v)}
                  >
                    {t("Edit")}
                  </Button>
                ) : null}
              </li>
            );
          })}
        </ul>
      ) : null}
      {edited ? <Edit holder={holder} volume={edited} onClose={() => setEdited(null)} onDone={refetch} /> : null}
    </Part>
  );
}

function Edit({
  holder,
  volume,
  onClose,
  onDone,
}: {
  holder: VolumeHolder;
  volume: Volume;
  onClose: () => void;
  onDone: () => void;
}) {
  const { own } = grantsTo(volume.grants, holder);
  const grant = useAction(SetGrant);
  const remove = useAction(RemoveGrant);
  const [chosen, setChosen] = useState<readonly Atom[]>(own?.permissions ?? []);
  const flip = (atom: Atom) => setChosen(chosen.includes(atom) ? chosen.filter((a) => a !== atom) : [...chosen, atom]);
  async function save() {
    const done =
      chosen.length > 0
        ? await grant.run({ input: { volume: volume.id, [holder.kind]: holder.id, permissions: [...chosen] } })
        : own
          ? await remove.run({ input: { id: own.id } })
          : true;
    if (!done) return;
    onDone();
    onClose();
  }
  return (
    <FormDialog
      title={t("{{volume}} for {{name}}", { volume: volume.name, name: holder.name })}
      submit={t("Save")}
      fields={["permissions"]}
      busy={grant.busy || remove.busy}
      failure={grant.failure ?? remove.failure}
      onSubmit={() => void save()}
      onClose={onClose}
    >
      {(wrong) => (
        <fieldset className="legendless stack small">
          <legend>{t("Permissions")}</legend>
          {atoms.map(({ value, label }) => (
            <Checkbox key={value} label={t(label)} checked={chosen.includes(value)} onChange={() => flip(value)} />
          ))}
          <div className="row">
            <Button variant="subtle" size="compact-xs" onClick={() => setChosen(atoms.map((a) => a.value))}>
              {t("All")}
            </Button>
            <Button variant="subtle" size="compact-xs" onClick={() => setChosen([])}>
              {t("None")}
            </Button>
          </div>
          {wrong.permissions ? (
            <p className="bad" role="alert">
              {wrong.permissions}
            </p>
          ) : null}
        </fieldset>
      )}
    </FormDialog>
  );
}
