import { Button, Select, TextInput } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { words } from "../../words";
import { FormDialog } from "../admin/Form";
import { nodesOf } from "../admin/usePages";
import { ObjectBrowser } from "./ObjectBrowser";
import { StoragesQuery, s3URL } from "./storage";

const ImportFolder = graphql(
  `mutation ImportFolder($input: ImportFolderInput!) { importFolder(input: $input) { vfolder { id } task { id status } } }`,
);
const ExportFolder = graphql(
  `mutation ExportFolder($input: ExportFolderInput!) { exportFolder(input: $input) { vfolder { id } task { id status } } }`,
);

const fields = ["objectStorage", "path", "directory", "existing"] as const;
const existings = [
  { value: "UPDATE", label: words.ObjectExisting.UPDATE },
  { value: "OVERWRITE", label: words.ObjectExisting.OVERWRITE },
  { value: "FAIL", label: words.ObjectExisting.FAIL },
] as const;
type Existing = (typeof existings)[number]["value"];

interface Props {
  way: "import" | "export";
  folder: { id: string; name: string };
  /** The directory of the folder that the user has open. */
  at?: string;
  onClose: () => void;
  onDone: () => void;
}

/**
 * Imports objects into a folder, or exports its files to an object storage. The page of the folder shows the progress.
 */
export function TransferDialog({ way, folder, at = "", onClose, onDone }: Props) {
  const { data } = useLiveQuery({ query: StoragesQuery, variables: { first: 100 } });
  const bringing = useAction(ImportFolder);
  const sending = useAction(ExportFolder);
  const [chosen, setChosen] = useState<string | null>(null);
  const [place, setPlace] = useState(""); // the path in the object storage
  const [inFolder, setInFolder] = useState(at);
  const [existing, setExisting] = useState<Existing>("UPDATE");
  const [browsing, setBrowsing] = useState(false);

  const all = nodesOf(data?.objectStorages).filter(
    (s) => s.permissions.includes("TRANSFER") && (way === "import" || !s.readOnly),
  );
  const storage = all.find((s) => s.id === chosen) ?? (all.length === 1 ? all[0] : undefined);
  const into = way === "import";
  const { busy, failure } = into ? bringing : sending;

  async function submit() {
    if (!storage) return;
    const common = { vfolder: folder.id, objectStorage: storage.id, existing };
    const done = into
      ? await bringing.run({ input: { ...common, path: place, directory: inFolder } })
      : await sending.run({ input: { ...common, path: inFolder, directory: place } });
    if (!done) return;
    toast({
      text: into
        ? t("The import into {{name}} has started.", { name: folder.name })
        : t("The export of {{name}} has started.", { name: folder.name }),
    });
    onDone();
    onClose();
  }
  return (
    <FormDialog
      title={into ? t("Import into {{name}}", { name: folder.name }) : t("Export {{name}}", { name: folder.name })}
      submit={into ? t("Import") : t("Export")}
      size="lg"
      busy={busy}
      failure={failure}
      fields={fields}
      disabled={!storage}
      onClose={onClose}
      onSubmit={() => void submit()}
    >
      {(wrong) => (
        <>
          {data && all.length === 0 ? (
            <p>
              {t("No object storage is available for this.")}{" "}
              <Link to="/object-storages" onClick={onClose}>
                {t("Add an object storage")}
              </Link>
            </p>
          ) : (
            <Select
              label={into ? t("Source object storage") : t("Destination object storage")}
              data-autofocus
              value={storage?.id ?? null}
              error={wrong.objectStorage}
              allowDeselect={false}
              onChange={(id) => {
                setChosen(id);
                setPlace("");
              }}
              data={all.map((s) => ({ value: s.id, label: `${s.name} (${s3URL(s)})` }))}
            />
          )}
          {storage ? (
            <>
              <div className="row" style={{ alignItems: "flex-end" }}>
                <TextInput
                  style={{ flex: 1 }}
                  label={into ? t("Source path in the storage") : t("Destination path in the storage")}
                  placeholder={into ? t("everything") : t("top level")}
                  value={place}
                  error={into ? wrong.path : wrong.directory}
                  onChange={(e) => setPlace(e.currentTarget.value)}
                />
                <Button variant="default" aria-expanded={browsing} onClick={() => setBrowsing(!browsing)}>
                  {t("Browse")}
                </Button>
              </div>
              {browsing ? (
                <ObjectBrowser
                  storage={storage}
                  path={place.replace(/\/+$/, "")}
                  onOpen={setPlace}
                  onChoose={into ? setPlace : undefined}
                />
              ) : null}
            </>
          ) : null}
          <TextInput
            label={into ? t("Destination path in the folder") : t("Source path in the folder")}
            placeholder={into ? t("top level") : t("everything")}
            value={inFolder}
            error={into ? wrong.directory : wrong.path}
            onChange={(e) => setInFolder(e.currentTarget.value)}
          />
          <Select
            label={into ? t("Existing files") : t("Existing objects")}
            allowDeselect={false}
            value={existing}
            error={wrong.existing}
            onChange={(v) => setExisting(existings.find((x) => x.value === v)?.value ?? existing)}
            data={existings.map((x) => ({ value: x.value, label: t(x.label) }))}
          />
        </>
      )}
    </FormDialog>
  );
}
