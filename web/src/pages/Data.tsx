import { Button, SegmentedControl } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect } from "react";
import { useSubscription } from "urql";
import { graphql } from "../api/graphql";
import { Empty, FailureNote } from "../components/Note";
import { FilterBox, FilterSelect } from "../components/admin/Filter";
import { usePages } from "../components/admin/usePages";
import { CreateFolder } from "../components/folder/CreateFolder";
import { FolderMenu } from "../components/folder/FolderMenu";
import { FolderTable } from "../components/folder/FolderTable";
import { useTasksMove } from "../components/folder/FolderTasks";
import { Invitations } from "../components/folder/Invitations";
import { QuotaBars } from "../components/folder/QuotaBars";
import { EmptyTrashButton } from "../components/folder/Trash";
import { FolderFields, scopesOf, usageModes, whose } from "../components/folder/folder";
import "../components/folder/folder.css";
import { SharesChanged } from "../components/folder/useInvitations";
import { useGathered } from "../hooks/useGathered";
import { administers, useViewer } from "../hooks/useViewer";
import { t } from "../i18n";

const FoldersQuery = graphql(`
  query Folders($where: VfolderWhereInput, $first: Int, $after: Cursor) {
    vfolders(first: $first, after: $after, where: $where, orderBy: [{ field: NAME, direction: ASC }]) {
      totalCount pageInfo { hasNextPage endCursor } edges { node { ...FolderFields } }
    }
  }
`, [FolderFields]);

const FoldersChanged = graphql(`subscription FoldersChanged { vfolderChanged { id name status } }`);

/** Whose folders and what for is told apart here, so that many are read; more only when asked for. */
const read = 1000;

export function Data() {
  const { q, show, mode } = useSearch({ from: "/frame/data" });
  const navigate = useNavigate({ from: "/data" });
  const viewer = useViewer();
  const me = viewer.user.id;
  const [creating, create] = useDisclosure(false);
  const trash = show === "trash";

  const pages = usePages({
    query: FoldersQuery,
    variables: { where: { ...(q ? { nameContainsFold: q } : {}), statusIn: trash ? ["trash", "deleting"] : ["ready", "cloning"], ...(mode ? { usageMode: mode } : {}) } },
    pick: (data) => data.vfolders,
    size: 100,
  });
  const again = useGathered(pages.reload, 300);
  useSubscription({ query: FoldersChanged }, (_, change) => {
    again();
    return change;
  });
  useSubscription({ query: SharesChanged }, (_, change) => {
    again();
    return change;
  });
  useTasksMove(null, again);
  const { more, loading, rows: all } = pages;
  useEffect(() => {
    if (more && !loading && all.length < read) more();
  }, [more, loading, all.length]);

  const rows = all.filter((f) => !show || trash || whose(f, me) === show);
  const filtered = Boolean(q || show || mode);
  const kinds = [
    { value: "", label: t("All") },
    { value: "mine", label: t("Mine") },
    { value: "project", label: t("Projects'") },
    { value: "shared", label: t("Shared with me") },
    ...(administers(viewer) ? [{ value: "others", label: t("Others'") }] : []),
    { value: "trash", label: t("Trash") },
  ];
  return (
    <>
      <div className="page-head">
        <h1>{t("Data")}</h1>
        <span className="dim" role="status">{pages.total}</span>
        <div className="push row">
          <FilterBox label={t("Filter by name")} value={q ?? ""} onChange={(text) => void navigate({ search: (s) => ({ ...s, q: text || undefined }), replace: true })} />
          <Button variant="default" onClick={create.open}>
            {t("New folder")}
          </Button>
        </div>
      </div>
      <Invitations onAccepted={pages.reload} />
      <QuotaBars scopes={scopesOf(all, me)} />
      <div className="row" style={{ flexWrap: "wrap" }}>
        <SegmentedControl aria-label={t("Whose folders")} value={show ?? ""} data={kinds} onChange={(v) => void navigate({ search: (s) => ({ ...s, show: (v || undefined) as typeof show }), replace: true })} />
        <FilterSelect label={t("What for")} any={t("For anything")} value={mode} options={usageModes.map((m) => ({ value: m.value, label: t(m.label) }))}
          onChange={(v) => void navigate({ search: (s) => ({ ...s, mode: v as typeof mode }), replace: true })} />
        {trash && rows.length > 0 ? <div className="push"><EmptyTrashButton rows={rows} onDone={pages.reload} /></div> : null}
      </div>
      <FailureNote failure={pages.failure} what={t("The folders could not be read")} />
      {rows.length === 0 && !loading && !pages.failure ? (
        <div className="panel">
          {trash && !q && !mode ? <Empty title={t("The trash is empty")} /> : filtered ? <Empty title={t("No folder matches")} /> : (
            <Empty title={t("No folders yet")} cli="berth folder create my-data && berth folder put my-data ./data">
              <span>{t("A folder keeps data beyond sessions, and is mounted into them.")}</span>
              <Button variant="light" onClick={create.open}>
                {t("Make the first one")}
              </Button>
              <span>{t("or from a terminal:")}</span>
            </Empty>
          )}
        </div>
      ) : null}
      {rows.length > 0 ? (
        <FolderTable rows={rows} trash={trash} actions={(f) => <FolderMenu folder={f} onChanged={pages.reload} onGone={pages.reload} />} />
      ) : null}
      {more && all.length >= read ? (
        <Button variant="subtle" fullWidth loading={loading} onClick={more}>
          {t("Show more")}
        </Button>
      ) : null}
      {creating ? <CreateFolder onClose={create.close} onCreated={(id) => void navigate({ to: "/data/$id", params: { id } })} /> : null}
    </>
  );
}
