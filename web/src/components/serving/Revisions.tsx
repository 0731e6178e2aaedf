import { Button, Select } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { t } from "../../i18n";
import { nodesOf } from "../admin/usePages";
import { Confirm } from "../Confirm";
import { slotsLine, when } from "../format";
import { FailureNote } from "../Note";
import { differences } from "./diff";
import { type DeploymentDetail, type Revision, RevisionParts, RollBackDeployment } from "./serving";

export const RevisionsQuery = graphql(
  `
  query DeploymentRevisions($id: ID!) {
    node(id: $id) {
      ... on Deployment {
        id
        revisions(first: 100, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
          totalCount edges { node { ...RevisionParts } }
        }
      }
    }
  }
`,
  [RevisionParts],
);

/** The revisions of a deployment, newest first. A new target refetches them. */
export function useRevisions(d: Pick<DeploymentDetail, "id" | "target">) {
  const { data, failure, refetch } = useLiveQuery({
    query: RevisionsQuery,
    variables: { id: d.id },
    requestPolicy: "cache-and-network",
  });
  const before = useRef(d.target);
  useEffect(() => {
    if (before.current !== d.target) refetch();
    before.current = d.target;
  }, [d.target, refetch]);
  const revisions: Revision[] = data?.node && "revisions" in data.node ? nodesOf(data.node.revisions) : [];
  return { revisions, loaded: Boolean(data), failure };
}

interface Props {
  deployment: DeploymentDetail;
  editable: boolean;
}

/** Lists the revisions of a deployment, and compares two of them. */
export function Revisions({ deployment: d, editable }: Props) {
  const { revisions, failure } = useRevisions(d);
  const [to, setTo] = useState<number | null>(null);
  const back = useAction(RollBackDeployment);
  return (
    <div className="stack">
      <FailureNote failure={failure} what={t("The revisions could not be loaded")} />
      <div className="panel scroll-x">
        <table className="grid" aria-label={t("Revisions")}>
          <thead>
            <tr>
              <th scope="col">{t("Revision")}</th>
              <th scope="col">{t("Image")}</th>
              <th scope="col">{t("Engine")}</th>
              <th scope="col">{t("Model")}</th>
              <th scope="col">{t("Resources")}</th>
              <th scope="col">{t("Created")}</th>
              <th />
            </tr>
          </thead>
          <tbody>
            {revisions.map((r) => (
              <tr key={r.id}>
                <td className="clip">
                  <b>{r.number}</b>{" "}
                  {r.number === d.current ? <span className="badge tone-ok">{t("current")}</span> : null}
                  {r.number === d.target && d.target !== d.current ? (
                    <span className="badge tone-wait">{t("next")}</span>
                  ) : null}
                  {r.comment ? <div className="dim clip">{r.comment}</div> : null}
                </td>
                <td className="clip" title={r.image}>
                  {r.image}
                </td>
                <td className="nowrap">{r.variant}</td>
                <td className="clip">
                  {r.vfolder ? `${r.vfolder.name}${r.subpath ? `/${r.subpath}` : ""}` : <span className="dim">–</span>}
                </td>
                <td className="nowrap">{slotsLine(r.request.slots)}</td>
                <td className="nowrap dim">
                  {when(r.createdAt)}
                  <div className="clip">{r.creator?.email}</div>
                </td>
                <td className="num">
                  {editable && r.number !== d.current && r.number !== d.target ? (
                    <Button
                      variant="subtle"
                      size="compact-sm"
                      aria-label={t("Change to it: revision {{number}}", { number: r.number })}
                      onClick={() => setTo(r.number)}
                    >
                      {t("Change to it")}
                    </Button>
                  ) : null}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {revisions.length > 1 ? <Compare revisions={revisions} /> : null}
      <Confirm
        opened={to !== null}
        title={t("Change to revision {{number}}?", { number: to ?? 0 })}
        action={t("Change")}
        busy={back.busy}
        failure={back.failure}
        onConfirm={async () => {
          if (to !== null && (await back.run({ input: { id: d.id, revision: to } }))) setTo(null);
        }}
        onClose={() => setTo(null)}
      >
        {t("Its replicas replace those of revision {{number}} as the strategy says.", { number: d.current })}
      </Confirm>
    </div>
  );
}

/** Compares two revisions field by field. Without a choice, the two newest. */
function Compare({ revisions }: { revisions: Revision[] }) {
  const [chosen, choose] = useState<[string | null, string | null]>([null, null]);
  const find = (id: string | null) => revisions.find((r) => r.id === id);
  const after = find(chosen[1]) ?? revisions[0]!;
  const before = find(chosen[0]) ?? revisions.find((r) => r !== after)!;
  const options = revisions.map((r) => ({ value: r.id, label: t("Revision {{number}}", { number: r.number }) }));
  const list = differences(before, after);
  return (
    <section className="panel" aria-label={t("Comparison")}>
      <div className="panel-head">
        <h2>{t("Compare")}</h2>
        <Select
          aria-label={t("Older revision")}
          w={140}
          data={options}
          value={before.id}
          allowDeselect={false}
          onChange={(id) => choose([id, after.id])}
        />
        <span aria-hidden="true">→</span>
        <Select
          aria-label={t("Newer revision")}
          w={140}
          data={options}
          value={after.id}
          allowDeselect={false}
          onChange={(id) => choose([before.id, id])}
        />
      </div>
      {list.length === 0 ? <p className="empty dim">{t("They are the same.")}</p> : null}
      {list.length > 0 ? (
        <div className="scroll-x">
          <table className="grid">
            <thead>
              <tr>
                <th scope="col">{t("Field")}</th>
                <th scope="col">{t("Revision {{number}}", { number: before.number })}</th>
                <th scope="col">{t("Revision {{number}}", { number: after.number })}</th>
              </tr>
            </thead>
            <tbody>
              {list.map((f) => (
                <tr key={f.name}>
                  <th scope="row">{t(f.name)}</th>
                  <td className="long">{textOf(f.name, f.before)}</td>
                  <td className="long">{textOf(f.name, f.after)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
    </section>
  );
}

/** Values of environment variables can be secrets. */
function textOf(name: string, text: string) {
  if (!text) return <span className="dim">{t("not set")}</span>;
  return name.startsWith("env ") ? <span className="dim">{t("hidden")}</span> : text;
}
