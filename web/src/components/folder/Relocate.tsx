import { Button, Checkbox, Modal, Select } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { FailureNote } from "../Note";
import { Crumbs } from "./Crumbs";
import { Refused, type Refusal, refusals } from "./Refused";
import { into } from "./files";
import { useFiles } from "./useFiles";

const MoveFiles = graphql(`mutation MoveFiles($input: MoveFilesInput!) { moveFiles(input: $input) { results { path error } } }`);
const CopyFiles = graphql(`mutation CopyFiles($input: CopyFilesInput!) { copyFiles(input: $input) { task { id status } } }`);
const TargetsQuery = graphql(`
  query MoveTargets { vfolders(first: 100, where: { status: ready }, orderBy: [{ field: NAME, direction: ASC }]) { edges { node { id name permissions } } } }
`);

interface Props {
  kind: "move" | "copy";
  folder: { id: string; name: string };
  paths: string[];
  /** The directory to begin at. */
  path: string;
  onClose: () => void;
  onDone: () => void;
}

/** Asks where entries go, in this or another folder. */
export function Relocate({ kind, folder, paths, path, onClose, onDone }: Props) {
  const { data } = useLiveQuery({ query: TargetsQuery });
  const move = useAction(MoveFiles);
  const copy = useAction(CopyFiles);
  const [target, setTarget] = useState(folder.id);
  const [directory, setDirectory] = useState(path);
  const [overwrite, setOverwrite] = useState(false);
  const [refused, setRefused] = useState<Refusal[]>([]);
  const targets = (data?.vfolders.edges ?? []).flatMap((e) => (e?.node && (e.node.id === folder.id || e.node.permissions.includes("write")) ? [e.node] : []));
  const here = target === folder.id;
  const items = into(paths, directory, here);

  async function go() {
    if (!items) return;
    const input = { vfolder: folder.id, items, overwrite, ...(here ? {} : { toVfolder: target }) };
    if (kind === "copy") {
      if (!(await copy.run({ input }))) return;
      toast({ text: t("The copy goes on; how far it is stands above the files.") });
    } else {
      const done = await move.run({ input });
      if (!done) return;
      const wrong = refusals(done.moveFiles.results);
      if (wrong.length > 0) {
        setRefused(wrong);
        onDone();
        return;
      }
    }
    onDone();
    onClose();
  }
  return (
    <Modal opened onClose={onClose} title={kind === "move" ? t("Move {{count}} entries", { count: paths.length }) : t("Copy {{count}} entries", { count: paths.length })} closeButtonProps={{ "aria-label": t("Close") }}>
      <div className="stack">
        <Select label={t("To the folder")} searchable allowDeselect={false} value={target} data={targets.length > 0 ? targets.map((f) => ({ value: f.id, label: f.name })) : [{ value: folder.id, label: folder.name }]}
          onChange={(v) => { if (v) { setTarget(v); setDirectory(""); } }} />
        <Directories folder={target} name={targets.find((f) => f.id === target)?.name ?? folder.name} path={directory} onOpen={setDirectory} />
        <Checkbox label={t("Replace files of the same name")} checked={overwrite} onChange={(e) => setOverwrite(e.currentTarget.checked)} />
        <FailureNote failure={move.failure ?? copy.failure} />
        <Refused rows={refused} />
        <div className="row" style={{ justifyContent: "flex-end" }}>
          {items ? null : <span className="dim">{t("They are there already, or it is inside of one of them.")}</span>}
          <Button variant="default" onClick={onClose}>{t("Cancel")}</Button>
          <Button loading={move.busy || copy.busy} disabled={!items} onClick={() => void go()}>{kind === "move" ? t("Move here") : t("Copy here")}</Button>
        </div>
      </div>
    </Modal>
  );
}

function Directories({ folder, name, path, onOpen }: { folder: string; name: string; path: string; onOpen: (path: string) => void }) {
  const { list, failure, more } = useFiles(folder, path, "");
  const dirs = (list?.files ?? []).filter((f) => f.type === "directory");
  return (
    <section aria-label={t("To the directory")} className="stack small">
      <Crumbs name={name} path={path} onOpen={onOpen} />
      <FailureNote failure={failure} />
      <ul className="rows directories">
        {dirs.map((d) => <li key={d.path}><button type="button" className="linkish" onClick={() => onOpen(d.path)}>{d.name}/</button></li>)}
        {list && dirs.length === 0 ? <li className="dim">{t("No directories in here")}</li> : null}
        {more ? <li><button type="button" className="linkish" onClick={more}>{t("Show more")}</button></li> : null}
      </ul>
    </section>
  );
}
