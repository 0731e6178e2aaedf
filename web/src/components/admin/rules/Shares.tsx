import { Button, NumberInput, Switch } from "@mantine/core";
import { useState } from "react";
import { graphql, type ResultOf } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { t } from "../../../i18n";
import { slotsLine } from "../../format";
import { FailureNote } from "../../Note";
import { FormDialog } from "../Form";
import { Part } from "../Panel";
import { ProjectPick } from "../Pickers";
import type { Group } from "./group";
import { type Holder, HolderPick } from "./HolderPick";
import { holderText } from "./holder";

const SharesQuery = graphql(`
  query GroupShares($id: ID!) {
    node(id: $id) {
      id
      ... on ResourceGroup {
        shareWeights {
          id weight resourceGroup { id } domain { id name } project { id name } user { id email }
          withinProject { id name }
        }
        shareHolders {
          scope domain { id name } project { id name } user { id email } weight due used factor held waiting
        }
      }
    }
  }
`);
const SetWeight = graphql(
  `mutation SetShareWeight($input: SetShareWeightInput!) { setShareWeight(input: $input) { shareWeight { id weight } } }`,
);
const RemoveWeight = graphql(
  `mutation DeleteShareWeight($input: DeleteShareWeightInput!) { deleteShareWeight(input: $input) { id } }`,
);

type Shares = Extract<NonNullable<ResultOf<typeof SharesQuery>["node"]>, { shareWeights: unknown }>;
type Weight = Shares["shareWeights"][number];
type ShareHolder = Shares["shareHolders"][number];

/**
 * Shows the share of each domain, project and user in a group, by weight and by usage, for queue orders that use
 * shares.
 */
export function GroupShares({ group }: { group: Group }) {
  const { data, failure, refetch } = useLiveQuery({ query: SharesQuery, variables: { id: group.id } });
  const remove = useAction(RemoveWeight, true);
  const [weighing, setWeighing] = useState(false);
  const shares = data?.node && "shareWeights" in data.node ? data.node : null;
  const editable = group.permissions.includes("UPDATE");
  return (
    <Part
      title={t("Fair shares")}
      aside={
        editable ? (
          <Button variant="light" onClick={() => setWeighing(true)}>
            {t("Set a weight")}
          </Button>
        ) : null
      }
    >
      <FailureNote failure={failure} />
      {group.order === "DRF" || group.order === "FAIR_SHARE" ? null : (
        <p className="dim">
          {t("The queue order of this group does not use shares. The table shows how fair share would count.")}
        </p>
      )}
      {shares && shares.shareHolders.length > 0 ? (
        <ShareTable list={shares.shareHolders} />
      ) : (
        <p className="dim">{t("No recent usage or requests.")}</p>
      )}
      {shares && shares.shareWeights.length > 0 ? (
        <ul className="rows" aria-label={t("Weights")}>
          {shares.shareWeights.map((w) => (
            <li key={w.id}>
              <b>{w.weight}</b>
              <span>{weightText(w)}</span>
              {editable ? (
                <Button
                  className="push"
                  variant="subtle"
                  color="red"
                  size="compact-xs"
                  aria-label={t("Remove the weight of {{holder}}", { holder: weightText(w) })}
                  onClick={async () => {
                    if (await remove.run({ input: { id: w.id } })) refetch();
                  }}
                >
                  {t("Remove")}
                </Button>
              ) : null}
            </li>
          ))}
        </ul>
      ) : null}
      {weighing ? <WeightDialog group={group} onClose={() => setWeighing(false)} onDone={refetch} /> : null}
    </Part>
  );
}

const weightText = (w: Weight) =>
  [
    holderText(w),
    w.withinProject ? t("in project {{name}}", { name: w.withinProject.name }) : null,
    w.resourceGroup ? null : t("in all groups"),
  ]
    .filter(Boolean)
    .join(", ");

const percent = (part: number) => `${Math.round(100 * part)} %`;
const depth = { DOMAIN: 0, PROJECT: 1, USER: 2, KEYPAIR: 2 };

/** Keeps only the holder of a line; the server also returns the domain and the project above it. */
const ownHolder = (h: ShareHolder) => ({
  domain: h.scope === "DOMAIN" ? h.domain : null,
  project: h.scope === "PROJECT" ? h.project : null,
  user: h.scope === "USER" ? h.user : null,
});

function ShareTable({ list }: { list: readonly ShareHolder[] }) {
  const flat = list.every((h) => h.scope === "USER");
  return (
    <div className="scroll-x" role="region" aria-label={t("Fair shares")} tabIndex={0}>
      <table className="grid" aria-label={t("Current shares")}>
        <thead>
          <tr>
            <th scope="col">{t("Domain, project or user")}</th>
            <th scope="col" className="num">
              {t("Weight")}
            </th>
            <th scope="col" className="num">
              {t("Entitled")}
            </th>
            <th scope="col" className="num">
              {t("Used")}
            </th>
            <th scope="col" className="num" title={t("The highest factor goes first.")}>
              {t("Factor")}
            </th>
            <th scope="col" className="num">
              {t("Pending")}
            </th>
          </tr>
        </thead>
        <tbody>
          {list.map((h) => (
            <tr key={`${h.scope} ${h.domain?.id} ${h.project?.id} ${h.user?.id}`}>
              <td className="nowrap" style={flat ? undefined : { paddingLeft: 12 + 16 * depth[h.scope] }}>
                {Object.values(ownHolder(h)).some(Boolean) ? (
                  holderText(ownHolder(h))
                ) : (
                  <span className="dim">{t("not visible to you")}</span>
                )}
                {h.scope === "USER" && slotsLine(h.held) ? (
                  <div className="dim">{t("uses {{slots}}", { slots: slotsLine(h.held) })}</div>
                ) : null}
              </td>
              <td className="num">{h.weight}</td>
              <td className="num nowrap">{percent(h.due)}</td>
              <td className={`num nowrap${h.used > h.due ? " tone-wait" : ""}`}>{percent(h.used)}</td>
              <td className="num">{h.factor.toFixed(3)}</td>
              <td className="num">{h.waiting}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const kinds = ["domain", "project", "user"] as const;

function WeightDialog({ group, onClose, onDone }: { group: Group; onClose: () => void; onDone: () => void }) {
  const { run, busy, failure } = useAction(SetWeight);
  const [holder, setHolder] = useState<Holder>({ kind: "project", id: null });
  const [within, setWithin] = useState<string | null>(null);
  const [weight, setWeight] = useState<number | string>(2);
  const [here, setHere] = useState(true);
  async function submit() {
    const input = {
      weight: Number(weight),
      [holder.kind]: holder.id,
      resourceGroup: here ? group.id : null,
      withinProject: holder.kind === "user" ? within : null,
    };
    if (!(await run({ input }))) return;
    onDone();
    onClose();
  }
  return (
    <FormDialog
      title={t("Set a weight")}
      onClose={onClose}
      onSubmit={() => void submit()}
      submit={t("Save")}
      busy={busy}
      failure={failure}
      disabled={!holder.id || !(Number(weight) > 0)}
      fields={[...kinds, "weight", "withinProject", "resourceGroup"]}
    >
      {(wrong) => (
        <>
          <HolderPick
            label={t("Domain, project or user")}
            kinds={kinds}
            value={holder}
            wrong={wrong}
            onChange={setHolder}
          />
          {holder.kind === "user" ? (
            <ProjectPick
              label={t("Only in the project")}
              placeholder={t("all projects")}
              value={within}
              error={wrong.withinProject}
              onChange={setWithin}
            />
          ) : null}
          <NumberInput
            label={t("Weight")}
            description={t("The default weight is 1. A weight of 2 entitles to twice as much.")}
            required
            min={0}
            max={1000}
            step={1}
            decimalScale={3}
            value={weight}
            error={wrong.weight}
            onChange={setWeight}
          />
          <Switch
            label={t("Only in {{group}}", { group: group.name })}
            description={t("Otherwise, in all groups.")}
            checked={here}
            onChange={(e) => setHere(e.currentTarget.checked)}
          />
        </>
      )}
    </FormDialog>
  );
}
