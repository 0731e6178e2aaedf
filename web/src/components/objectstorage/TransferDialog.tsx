import { Button, Select, TextInput } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { FormDialog } from "../admin/Form";
import { nodesOf } from "../admin/usePages";
import { ObjectBrowser } from "./ObjectBrowser";
import { StoragesQuery, placeIn } from "./storage";

const ImportFolder = graphql(`mutation ImportFolder($input: ImportFolderInput!) { importFolder(input: $input) { vfolder { id } task { id status } } }`);
const ExportFolder = graphql(`mutation ExportFolder($input: ExportFolderInput!) { exportFolder(input: $input) { vfolder { id } task { id status } } }`);

const fields = ["objectStorage", "path", "directory", "existing"] as const;
const existings = [
  { value: "update", label: "equal ones stay, others are replaced" },
  { value: "overwrite", label: "they are replaced" },
  { value: "fail", label: "they stay, and the task tells of them" },
] as const;
type Existing = (typeof existings)[number]["value"];

interface Props {
  way: "import" | "export";
  folder: { id: string; name: string };
  /** Where in the folder one stands. */
  at?: string;
  onClose: () => void;
  onDone: () => void;
}

/** Brings objects into a folder, or sends its files to a storage; the folder's page shows how far it is. */
export function TransferDialog({ way, folder, at = "", onClose, onDone }: Props) {
  const { data } = useLiveQuery({ query: StoragesQuery, variables: { first: 100 } });
  const bringing = useAction(ImportFolder);
  const sending = useAction(ExportFolder);
  const [chosen, setChosen] = useState<string | null>(null);
  const [place, setPlace] = useState(""); // in the storage
  const [inFolder, setInFolder] = useState(at);
  const [existing, setExisting] = useState<Existing>("update");
  const [browsing, setBrowsing] = useState(false);

  const all = nodesOf(data?.objectStorages).filter((s) => s.permissions.includes("special") && (way === "import" || !s.readOnly));
  const storage = all.find((s) => s.id === chosen) ?? (all.length === 1 ? all[0] : undefined);
  const into = way === "import";
  const { busy, failure } = into ? bringing : sending;

  async function submit() {
    if (!storage) return;
    const common = { vfolder: folder.id, objectStorage: storage.id, existing };
    const done = into ? await bringing.run({ input: { ...common, path: place, directory: inFolder } }) : await sending.run({ input: { ...common, path: inFolder, directory: place } });
    if (!done) return;
    toast({ text: into ? t("Objects are on their way into {{name}}.", { name: folder.name }) : t("Files of {{name}} are on their way.", { name: folder.name }) });
    onDone();
    onClose();
  }
  return (
    <FormDialog title={into ? t("Import into {{name}}", { name: folder.name }) : t("Export {{name}}", { name: folder.name })} submit={into ? t("Import") : t("Export")} size="lg"
      busy={busy} failure={failure} fields={fields} disabled={!storage} onClose={onClose} onSubmit={() => void submit()}>
      {(wrong) => (
        <>
          {data && all.length === 0 ? (
            <p>{t("There is no object storage that you may use for this.")} <Link to="/object-storages" onClick={onClose}>{t("Add one")}</Link></p>
          ) : (
            <Select label={into ? t("From the object storage") : t("To the object storage")} data-autofocus value={storage?.id ?? null} error={wrong.objectStorage} allowDeselect={false}
              onChange={(id) => { setChosen(id); setPlace(""); }} data={all.map((s) => ({ value: s.id, label: `${s.name} (${placeIn(s)})` }))} />
          )}
          {storage ? (
            <>
              <div className="row" style={{ alignItems: "flex-end" }}>
                <TextInput style={{ flex: 1 }} label={into ? t("What, in the storage") : t("Where to, in the storage")} placeholder={into ? t("everything") : t("its top")} value={place} error={into ? wrong.path : wrong.directory}
                  onChange={(e) => setPlace(e.currentTarget.value)} />
                <Button variant="default" aria-expanded={browsing} onClick={() => setBrowsing(!browsing)}>{t("Look")}</Button>
              </div>
              {browsing ? <ObjectBrowser storage={storage} path={place.replace(/\/+$/, "")} onOpen={setPlace} onChoose={into ? setPlace : undefined} /> : null}
            </>
          ) : null}
          <TextInput label={into ? t("Where to, in the folder") : t("What, of the folder")} placeholder={into ? t("its top") : t("everything")} value={inFolder} error={into ? wrong.directory : wrong.path} onChange={(e) => setInFolder(e.currentTarget.value)} />
          <Select label={into ? t("Files that are there already") : t("Objects that are there already")} allowDeselect={false} value={existing} error={wrong.existing}
            onChange={(v) => setExisting(existings.find((x) => x.value === v)?.value ?? existing)} data={existings.map((x) => ({ value: x.value, label: t(x.label) }))} />
        </>
      )}
    </FormDialog>
  );
}
