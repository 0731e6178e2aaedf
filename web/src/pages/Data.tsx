import { Button, SegmentedControl } from "@mantine/core";
import { useDebouncedCallback, useDisclosure } from "@mantine/hooks";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useSubscription } from "urql";
import { graphql } from "../api/graphql";
import { FilterBox, FilterSelect } from "../components/admin/Filter";
import { ProjectPick, UserPick } from "../components/admin/Pickers";
import { nodesOf, usePages } from "../components/admin/usePages";
import { CreateFolder } from "../components/folder/CreateFolder";
import { FolderMenu } from "../components/folder/FolderMenu";
import { FolderTable } from "../components/folder/FolderTable";
import { useTaskChanges } from "../components/folder/FolderTasks";
import { narrows, whereOf } from "../components/folder/filter";
import { FoldersQuery, HeldFields, scopesOf, usageModes } from "../components/folder/folder";
import { Invitations } from "../components/folder/Invitations";
import { QuotaBars } from "../components/folder/QuotaBars";
import { EmptyTrashButton } from "../components/folder/Trash";
import { Empty, FailureNote } from "../components/Note";
import "../components/folder/folder.css";
import { SharesChanged } from "../components/folder/useInvitations";
import { useLiveQuery } from "../hooks/useLiveQuery";
import { useNames } from "../hooks/useNames";
import { administers, useViewer } from "../hooks/useViewer";
import { t } from "../i18n";

/** The quota scopes of the viewer and their projects. They are few, however many folders there are. */
const HeldQuery = graphql(
  `
  query HeldScopes($projects: [ID!]!) {
    mine: vfolders(first: 100, where: { kind: MINE }) {
      edges { node { id project { id name } quotaScope { ...HeldFields } } }
    }
    projects: vfolders(first: 100, where: { projectIDIn: $projects }) {
      edges { node { id project { id name } quotaScope { ...HeldFields } } }
    }
  }
`,
  [HeldFields],
);

const FoldersChanged = graphql(`subscription FoldersChanged { vfolderChanged { id name status } }`);

export function Data() {
  const filter = useSearch({ from: "/frame/data" });
  const { q, show, mode, owner, project } = filter;
  const navigate = useNavigate({ from: "/data" });
  const viewer = useViewer();
  const names = useNames([owner, project]);
  const [creating, create] = useDisclosure(false);
  const trash = show === "trash";

  const pages = usePages({
    query: FoldersQuery,
    variables: { where: whereOf(filter) },
    pick: (data) => data.vfolders,
    size: 100,
  });
  const held = useLiveQuery({ query: HeldQuery, variables: { projects: viewer.projects.map((p) => p.id) } });
  const scopes = scopesOf([...nodesOf(held.data?.mine), ...nodesOf(held.data?.projects)]);
  const changed = () => {
    pages.reload();
    held.refetch();
  };
  const again = useDebouncedCallback(changed, { delay: 300, maxWait: 300 });
  useSubscription({ query: FoldersChanged }, (_, change) => {
    again();
    return change;
  });
  useSubscription({ query: SharesChanged }, (_, change) => {
    again();
    return change;
  });
  useTaskChanges(null, again);
  const { more, loading, rows, total } = pages;
  const filtered = Boolean(q || show || mode || owner || project);
  const narrow = (some: Partial<typeof filter>) => void navigate({ search: (s) => ({ ...s, ...some }), replace: true });
  const kinds = [
    { value: "", label: t("All") },
    { value: "mine", label: t("Mine") },
    { value: "project", label: t("Projects") },
    { value: "shared", label: t("Shared with me") },
    ...(administers(viewer) ? [{ value: "others", label: t("Other users") }] : []),
    { value: "trash", label: t("Trash") },
  ];
  return (
    <>
      <div className="page-head">
        <h1>{t("Data")}</h1>
        <span className="dim" role="status">
          {total}
        </span>
        <div className="push row">
          <FilterBox
            label={t("Filter by name")}
            value={q ?? ""}
            onChange={(text) => narrow({ q: text || undefined })}
          />
          <Button variant="subtle" component={Link} to="/object-storages">
            {t("Object storages")}
          </Button>
          <Button variant="default" onClick={create.open}>
            {t("New folder")}
          </Button>
        </div>
      </div>
      <Invitations onAccepted={changed} />
      <QuotaBars scopes={scopes} />
      <div className="row" style={{ flexWrap: "wrap" }}>
        <SegmentedControl
          aria-label={t("Owner of the folders")}
          value={show ?? ""}
          data={kinds}
          onChange={(v) => narrow({ show: (v || undefined) as typeof show })}
        />
        <FilterSelect
          label={t("Purpose")}
          any={t("Any purpose")}
          value={mode}
          options={usageModes.map((m) => ({ value: m.value, label: t(m.label) }))}
          onChange={(v) => narrow({ mode: v as typeof mode })}
        />
        {narrows.project(show) && !administers(viewer) && viewer.projects.length > 1 ? (
          <FilterSelect
            label={t("Project")}
            any={t("Any project")}
            value={project}
            options={viewer.projects.map((p) => ({ value: p.id, label: p.name }))}
            onChange={(id) => narrow({ project: id })}
          />
        ) : null}
        {narrows.project(show) && administers(viewer) ? (
          <ProjectPick
            key={`project ${names[project ?? ""]}`}
            bare
            label={t("Project")}
            placeholder={t("Any project")}
            w={180}
            value={project ?? null}
            chosen={project ? { value: project, label: names[project] ?? "…" } : null}
            onChange={(id) => narrow({ project: id ?? undefined })}
          />
        ) : null}
        {narrows.owner(show) && administers(viewer) ? (
          <UserPick
            key={`owner ${names[owner ?? ""]}`}
            bare
            label={t("Owner")}
            placeholder={t("Any owner")}
            w={220}
            value={owner ?? null}
            chosen={owner ? { value: owner, label: names[owner] ?? "…" } : null}
            onChange={(id) => narrow({ owner: id ?? undefined })}
          />
        ) : null}
        {trash && rows.length > 0 ? (
          <div className="push">
            <EmptyTrashButton rows={rows} whole={more === null} onDone={changed} />
          </div>
        ) : null}
      </div>
      <FailureNote failure={pages.failure} what={t("The folders could not be loaded")} />
      {rows.length === 0 && !loading && !pages.failure ? (
        <div className="panel">
          {trash && !q && !mode && !owner && !project ? (
            <Empty title={t("The trash is empty")} />
          ) : filtered ? (
            <Empty title={t("No folder matches")} />
          ) : (
            <Empty title={t("No folders yet")} cli="berth folder create my-data && berth folder put my-data ./data">
              <span>{t("A folder keeps data after a session ends. You can mount it in other sessions.")}</span>
              <Button variant="light" onClick={create.open}>
                {t("Create the first folder")}
              </Button>
              <span>{t("or from a terminal:")}</span>
            </Empty>
          )}
        </div>
      ) : null}
      {rows.length > 0 ? (
        <FolderTable
          rows={rows}
          trash={trash}
          actions={(f) => <FolderMenu folder={f} onChanged={changed} onGone={changed} />}
        />
      ) : null}
      {more ? (
        <div className="row" style={{ justifyContent: "center" }}>
          <span className="dim">{t("{{shown}} of {{total}}", { shown: rows.length, total: total ?? "?" })}</span>
          <Button variant="default" loading={loading} onClick={more}>
            {t("Show more")}
          </Button>
        </div>
      ) : null}
      {creating ? (
        <CreateFolder onClose={create.close} onCreated={(id) => void navigate({ to: "/data/$id", params: { id } })} />
      ) : null}
    </>
  );
}
