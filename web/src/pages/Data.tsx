import { Button, Modal, Select, TextInput } from "@mantine/core";
import { useDebouncedValue, useDisclosure } from "@mantine/hooks";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { useSubscription } from "urql";
import { byField } from "../api/errors";
import { graphql } from "../api/graphql";
import { Empty, FailureNote } from "../components/Note";
import { bytes, when } from "../components/format";
import { goodFolderName } from "../components/folder/dropped";
import { useAction } from "../hooks/useAction";
import { useGathered } from "../hooks/useGathered";
import { useLiveQuery } from "../hooks/useLiveQuery";
import { useViewer } from "../hooks/useViewer";
import { t } from "../i18n";

const FoldersQuery = graphql(`
  query Folders($where: VfolderWhereInput) {
    vfolders(first: 100, where: $where, orderBy: [{ field: NAME, direction: ASC }]) {
      totalCount
      edges {
        node {
          id name status createdAt
          owner { id email } project { id name } creator { id email }
          quotaScope { id usedBytes limitBytes volume { id name } }
          mountedBy { id version name }
        }
      }
    }
  }
`);

const FoldersChanged = graphql(`subscription FoldersChanged { vfolderChanged { id name status } }`);

const CreateVfolder = graphql(`
  mutation CreateVfolder($input: CreateVfolderInput!) { createVfolder(input: $input) { vfolder { id name status } } }
`);

export function Data() {
  const search = useSearch({ from: "/frame/data" });
  const navigate = useNavigate({ from: "/data" });
  const [typed, setTyped] = useState(search.q ?? "");
  const [q] = useDebouncedValue(typed, 200);
  const [creating, create] = useDisclosure(false);
  useEffect(() => {
    void navigate({ search: { q: q || undefined }, replace: true });
  }, [q, navigate]);

  const { data, failure, refetch } = useLiveQuery({ query: FoldersQuery, variables: { where: q ? { nameContainsFold: q } : null } });
  const again = useGathered(refetch, 300);
  useSubscription({ query: FoldersChanged }, (_, change) => {
    again();
    return change;
  });
  const rows = (data?.vfolders.edges ?? []).flatMap((e) => (e?.node ? [e.node] : []));

  return (
    <>
      <div className="page-head">
        <h1>{t("Data")}</h1>
        <span className="dim">{data?.vfolders.totalCount}</span>
        <div className="push row">
          <TextInput data-filter placeholder={t("Filter by name  /")} aria-label={t("Filter by name")} value={typed} w={220}
            onChange={(e) => setTyped(e.currentTarget.value)} />
          <Button variant="default" onClick={create.open}>
            {t("New folder")}
          </Button>
        </div>
      </div>
      <FailureNote failure={failure} what={t("The folders could not be read")} />
      {data && rows.length === 0 ? (
        <div className="panel">
          {q ? <Empty title={t("No folder matches")} /> : (
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
        <div className="panel scroll-x">
          <table className="grid">
            <thead>
              <tr>
                <th>{t("Folder")}</th>
                <th>{t("Belongs to")}</th>
                <th>{t("Volume")}</th>
                <th>{t("Mounted by")}</th>
                <th className="num">{t("Used in the scope")}</th>
                <th>{t("Created")}</th>
              </tr>
            </thead>
            <tbody>
              {rows.map((f) => (
                <tr key={f.id}>
                  <td className="clip">
                    {f.status === "ready" ? (
                      <Link to="/data/$id" params={{ id: f.id }}>
                        <b>{f.name}</b>
                      </Link>
                    ) : (
                      <>
                        {f.name} <span className="dim">{t(f.status)}</span>
                      </>
                    )}
                  </td>
                  <td className="clip">{f.project ? `${t("project")} ${f.project.name}` : f.owner?.email}</td>
                  <td>{f.quotaScope.volume.name}</td>
                  <td className="clip">{f.mountedBy.map((s) => s.name).join(", ") || <span className="dim">–</span>}</td>
                  <td className="num nowrap">
                    {f.quotaScope.usedBytes === null ? "–" : bytes(f.quotaScope.usedBytes)}
                    {f.quotaScope.limitBytes ? <span className="dim"> / {bytes(f.quotaScope.limitBytes)}</span> : null}
                  </td>
                  <td className="nowrap dim">{when(f.createdAt)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
      <Create opened={creating} onClose={create.close} onCreated={(id) => void navigate({ to: "/data/$id", params: { id } })} />
    </>
  );
}

function Create({ opened, onClose, onCreated }: { opened: boolean; onClose: () => void; onCreated: (id: string) => void }) {
  const { projects } = useViewer();
  const [name, setName] = useState("");
  const [project, setProject] = useState("");
  const { run, busy, failure, clear } = useAction(CreateVfolder);
  const { field, rest } = byField(failure, ["name", "project", "volume"]);
  const bad = name !== "" && !goodFolderName(name);

  function close() {
    setName("");
    clear();
    onClose();
  }
  async function submit(event: React.FormEvent) {
    event.preventDefault();
    const done = await run({ input: { name, ...(project ? { project } : {}) } });
    if (!done) return;
    close();
    onCreated(done.createVfolder.vfolder.id);
  }
  return (
    <Modal opened={opened} onClose={close} title={<h2>{t("New folder")}</h2>} closeButtonProps={{ "aria-label": t("Close") }}>
      <form className="stack" onSubmit={submit}>
        <TextInput label={t("Name")} description={t("Letters, digits, dot, dash, underscore; at most 64")} value={name} data-autofocus
          onChange={(e) => setName(e.currentTarget.value)} error={field.name ?? (bad ? t("Such a name is not possible.") : undefined)} />
        {projects.length > 0 ? (
          <Select label={t("Belongs to")} value={project} onChange={(p) => setProject(p ?? "")} error={field.project}
            data={[{ value: "", label: t("me") }, ...projects.map((p) => ({ value: p.id, label: `${t("project")} ${p.name}` }))]} />
        ) : null}
        <FailureNote failure={rest} />
        <Button type="submit" loading={busy} disabled={!goodFolderName(name)}>
          {t("Create")}
        </Button>
      </form>
    </Modal>
  );
}
