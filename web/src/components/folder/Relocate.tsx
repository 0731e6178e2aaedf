import { Button, Checkbox, Modal, Select } from "@mantine/core";
import { useDebouncedValue } from "@mantine/hooks";
import { useMemo, useState } from "react";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { nodesOf } from "../admin/usePages";
import { FailureNote } from "../Note";
import { Crumbs } from "./Crumbs";
import { inBatches, moveTargets } from "./files";
import { folderStore } from "./folderStore";
import { type Refusal, Refused, refusals } from "./Refused";
import { useFiles } from "./useFiles";

const MoveFiles = graphql(
  `mutation MoveFiles($input: MoveFilesInput!) { moveFiles(input: $input) { results { path error } } }`,
);
const CopyFiles = graphql(
  `mutation CopyFiles($input: CopyFilesInput!) { copyFiles(input: $input) { task { id status } } }`,
);
const TargetsQuery = graphql(`
  query MoveTargets($where: VfolderWhereInput) {
    vfolders(first: 50, where: $where, orderBy: [{ field: NAME, direction: ASC }]) {
      edges { node { id name permissions } }
    }
  }
`);

interface Props {
  kind: "move" | "copy";
  folder: { id: string; name: string };
  paths: string[];
  /** The directory to open first. */
  path: string;
  onClose: () => void;
  onDone: () => void;
}

/** Asks for the destination of entries, in this or another folder. */
export function Relocate({ kind, folder, paths, path, onClose, onDone }: Props) {
  const [typed, setTyped] = useState("");
  const [chosen, setChosen] = useState(folder);
  const [debounced] = useDebouncedValue(typed.trim(), 200);
  // The name of the selected folder is not a search.
  const q = debounced === chosen.name ? "" : debounced;
  const { data } = useLiveQuery({
    query: TargetsQuery,
    variables: { where: { status: "READY", ...(q ? { nameContainsFold: q } : {}) } },
  });
  const move = useAction(MoveFiles);
  const copy = useAction(CopyFiles);
  const [directory, setDirectory] = useState(path);
  const [overwrite, setOverwrite] = useState(false);
  const [refused, setRefused] = useState<Refusal[]>([]);
  /** The paths that are still to be moved or copied. A retry does not repeat the successful ones. */
  const [remaining, setRemaining] = useState(paths);
  const found = nodesOf(data?.vfolders).filter((f) => f.id === folder.id || f.permissions.includes("WRITE_FILES"));
  const targets: { id: string; name: string }[] = found.some((f) => f.id === chosen.id) ? found : [chosen, ...found];
  const here = chosen.id === folder.id;
  const items = moveTargets(remaining, directory, here);

  /** Keeps the dialog open for the remaining paths. */
  function keepOpen(rest: readonly { path: string }[], wrong: Refusal[]) {
    setRefused(wrong);
    setRemaining(rest.map((r) => r.path));
    onDone();
  }
  async function submit() {
    if (!items) return;
    const wrong: Refusal[] = [];
    for (const batch of inBatches(items)) {
      const input = { vfolder: folder.id, items: batch, overwrite, ...(here ? {} : { toVfolder: chosen.id }) };
      const done = kind === "copy" ? await copy.run({ input }) : await move.run({ input });
      // The previous batches succeeded and are not repeated.
      if (!done)
        return keepOpen([...wrong, ...items.slice(items.indexOf(batch[0]!)).map((x) => ({ path: x.from }))], wrong);
      if ("moveFiles" in done) wrong.push(...refusals(done.moveFiles.results));
    }
    if (wrong.length > 0) return keepOpen(wrong, wrong);
    if (kind === "copy") toast({ text: t("The copy continues. Its progress is shown above the files.") });
    onDone();
    onClose();
  }
  return (
    <Modal
      opened
      onClose={onClose}
      title={
        kind === "move"
          ? t("Move {{count}} entries", { count: remaining.length })
          : t("Copy {{count}} entries", { count: remaining.length })
      }
      closeButtonProps={{ "aria-label": t("Close") }}
    >
      <div className="stack">
        <Select
          label={t("Destination folder")}
          searchable
          allowDeselect={false}
          filter={({ options }) => options}
          nothingFoundMessage={t("No matches")}
          value={chosen.id}
          data={targets.map((f) => ({ value: f.id, label: f.name }))}
          onSearchChange={setTyped}
          onChange={(v, option) => {
            if (v && option) {
              setChosen({ id: v, name: option.label });
              setDirectory("");
            }
          }}
        />
        <Directories folder={chosen.id} name={chosen.name} path={directory} onOpen={setDirectory} />
        <Checkbox
          label={t("Replace files with the same name")}
          checked={overwrite}
          onChange={(e) => setOverwrite(e.currentTarget.checked)}
        />
        <FailureNote failure={move.failure ?? copy.failure} />
        <Refused rows={refused} />
        <div className="row" style={{ justifyContent: "flex-end" }}>
          {items ? null : (
            <span className="dim">
              {t("The files are already there, or the destination is inside one of the selected directories.")}
            </span>
          )}
          <Button variant="default" onClick={onClose}>
            {t("Cancel")}
          </Button>
          <Button loading={move.busy || copy.busy} disabled={!items} onClick={() => void submit()}>
            {refused.length > 0 ? t("Retry") : kind === "move" ? t("Move here") : t("Copy here")}
          </Button>
        </div>
      </div>
    </Modal>
  );
}

function Directories({
  folder,
  name,
  path,
  onOpen,
}: {
  folder: string;
  name: string;
  path: string;
  onOpen: (path: string) => void;
}) {
  const store = useMemo(() => folderStore(folder, name), [folder, name]);
  const { list, failure, more } = useFiles(store, path, "");
  const dirs = (list?.files ?? []).filter((f) => f.type === "DIRECTORY");
  return (
    <section aria-label={t("Destination directory")} className="stack small">
      <Crumbs name={name} path={path} onOpen={onOpen} />
      <FailureNote failure={failure} />
      <ul className="rows directories">
        {dirs.map((d) => (
          <li key={d.path}>
            <button type="button" className="linkish" onClick={() => onOpen(d.path)}>
              {d.name}/
            </button>
          </li>
        ))}
        {list && dirs.length === 0 ? <li className="dim">{t("No directories here")}</li> : null}
        {more ? (
          <li>
            <button type="button" className="linkish" onClick={more}>
              {t("Show more")}
            </button>
          </li>
        ) : null}
      </ul>
    </section>
  );
}
