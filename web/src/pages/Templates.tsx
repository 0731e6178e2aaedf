import { Button, Select } from "@mantine/core";
import { useState } from "react";
import { graphql, type ResultOf } from "../api/graphql";
import { nodesOf } from "../components/admin/usePages";
import { Confirm } from "../components/Confirm";
import { slotsLine, when } from "../components/format";
import { RequestParts } from "../components/launch/saved";
import { Empty, FailureNote } from "../components/Note";
import { useAction } from "../hooks/useAction";
import { useLaunch } from "../hooks/useLaunch";
import { useLiveQuery } from "../hooks/useLiveQuery";
import { useViewer } from "../hooks/useViewer";
import { t } from "../i18n";

const TemplatesQuery = graphql(
  `
  query SessionTemplates {
    sessionTemplates(first: 100, orderBy: [{ field: NAME, direction: ASC }]) {
      totalCount
      edges {
        node {
          id name description updatedAt permissions owner { id email } project { id name }
          request { ...RequestParts }
        }
      }
    }
  }
`,
  [RequestParts],
);
const ShareTemplate = graphql(`
  mutation ShareSessionTemplate($input: UpdateSessionTemplateInput!) {
    updateSessionTemplate(input: $input) { template { id updatedAt project { id name } } }
  }
`);
const DeleteTemplate = graphql(`
  mutation DeleteSessionTemplate($input: DeleteSessionTemplateInput!) { deleteSessionTemplate(input: $input) { id } }
`);

type Edge = NonNullable<NonNullable<ResultOf<typeof TemplatesQuery>["sessionTemplates"]["edges"]>[number]>;
type Template = NonNullable<Edge["node"]>;

/** The templates that the viewer can use or manage. */
export function Templates() {
  const { data, failure, refetch } = useLiveQuery({ query: TemplatesQuery });
  const rows = nodesOf(data?.sessionTemplates);
  const launch = useLaunch();
  return (
    <>
      <div className="page-head">
        <h1>{t("Templates")}</h1>
        <span className="dim">{data ? data.sessionTemplates.totalCount : null}</span>
      </div>
      <FailureNote failure={failure} what={t("The templates could not be loaded")} />
      {data && rows.length === 0 ? (
        <div className="panel">
          <Empty title={t("No templates yet")} cli="berth template create NAME --from SESSION">
            <span>{t("A template is a saved launch of yours, or of a project for all of its members.")}</span>
            <Button variant="light" onClick={() => launch()}>
              {t("Fill in a launch and save it")}
            </Button>
            <span>{t("or from a terminal:")}</span>
          </Empty>
        </div>
      ) : null}
      {rows.length > 0 ? (
        <div className="panel scroll-x">
          <table className="grid">
            <thead>
              <tr>
                <th>{t("Template")}</th>
                <th>{t("Owner")}</th>
                <th>{t("Image")}</th>
                <th>{t("Resources")}</th>
                <th>{t("Changed")}</th>
                <th />
              </tr>
            </thead>
            <tbody>
              {rows.map((x) => (
                <Row key={x.id} template={x} onChange={refetch} />
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
    </>
  );
}

function Row({ template: x, onChange }: { template: Template; onChange: () => void }) {
  const launch = useLaunch();
  const viewer = useViewer();
  const [asking, setAsking] = useState<"delete" | "share" | null>(null);
  const [project, setProject] = useState<string | null>(null);
  const share = useAction(ShareTemplate);
  const remove = useAction(DeleteTemplate);
  const can = (what: "UPDATE" | "DELETE") => x.permissions.includes(what);
  const usable = x.project ? viewer.projects.some((p) => p.id === x.project?.id) : x.owner?.id === viewer.user.id;
  return (
    <tr>
      <td className="clip">
        <b>{x.name}</b> <span className="dim">{x.description}</span>
      </td>
      <td className="clip">
        {x.project ? t("project {{name}}", { name: x.project.name }) : (x.owner?.email ?? t("not visible to you"))}
      </td>
      <td className="clip">{x.request.image}</td>
      <td className="nowrap">{slotsLine(x.request.slots)}</td>
      <td className="nowrap dim">{when(x.updatedAt)}</td>
      <td className="num nowrap">
        {usable ? (
          <Button
            variant="light"
            size="compact-sm"
            onClick={() =>
              launch({
                base: {
                  kind: "template",
                  id: x.id,
                  name: x.name,
                  mine: can("UPDATE"),
                  shared: x.project?.id ?? null,
                  request: x.request,
                },
              })
            }
          >
            {can("UPDATE") ? t("Start or edit") : t("Start")}
          </Button>
        ) : null}{" "}
        {can("UPDATE") && !x.project ? (
          <Button variant="subtle" size="compact-sm" onClick={() => setAsking("share")}>
            {t("Share")}
          </Button>
        ) : null}{" "}
        {can("DELETE") ? (
          <Button variant="subtle" color="red" size="compact-sm" onClick={() => setAsking("delete")}>
            {t("Delete")}
          </Button>
        ) : null}
        <Confirm
          opened={asking === "delete"}
          title={t("Delete template {{name}}?", { name: x.name })}
          action={t("Delete")}
          busy={remove.busy}
          failure={remove.failure}
          onConfirm={async () => {
            if (!(await remove.run({ input: { id: x.id } }))) return;
            setAsking(null);
            onChange();
          }}
          onClose={() => setAsking(null)}
        >
          {t("Sessions that were started with it continue.")}
        </Confirm>
        <Confirm
          opened={asking === "share"}
          title={t("Share template {{name}}", { name: x.name })}
          action={t("Share")}
          busy={share.busy}
          failure={share.failure}
          onConfirm={async () => {
            if (!project || !(await share.run({ input: { id: x.id, project } }))) return;
            setAsking(null);
            onChange();
          }}
          onClose={() => setAsking(null)}
        >
          <p>
            {t(
              "The template belongs to the project from then on: its members can use it and read its environment, and its admins can change it.",
            )}
          </p>
          <Select
            label={t("Project")}
            data={viewer.projects.map((p) => ({ value: p.id, label: p.name }))}
            value={project}
            onChange={setProject}
          />
        </Confirm>
      </td>
    </tr>
  );
}
