import { Button } from "@mantine/core";
import type { FileEntry } from "../../api/files";
import { language, t } from "../../i18n";
import { word } from "../../words";
import { bytes, when } from "../format";
import { opensAsDirectory } from "./files";
import { Preview } from "./preview/Preview";
import type { FileStore } from "./store";

interface Props {
  store: FileStore;
  file: FileEntry;
  writable: boolean;
  onClose: () => void;
  onOpen: () => void;
  onDownload: () => void;
  onRename: () => void;
  /** Undefined if the store cannot move and copy. */
  onRelocate?: (kind: "move" | "copy") => void;
  onRemove: () => void;
  onSaved: () => void;
}

/** The right pane: the selected entry, its actions and its content. */
export function FileDetails({
  store,
  file,
  writable,
  onClose,
  onOpen,
  onDownload,
  onRename,
  onRelocate,
  onRemove,
  onSaved,
}: Props) {
  const directory = opensAsDirectory(file);
  const plain = file.type === "FILE";
  return (
    <section className="details stack" aria-label={t("Details of {{name}}", { name: file.name })}>
      <div className="row">
        <h3 style={{ overflowWrap: "anywhere" }}>{file.name}</h3>
        <Button className="push" variant="subtle" size="compact-xs" onClick={onClose}>
          {t("Close")}
        </Button>
      </div>
      <dl className="facts">
        <dt>{t("Type")}</dt>
        <dd>{word("FileType", file.type)}</dd>
        {plain ? (
          <>
            <dt>{t("Size")}</dt>
            <dd>
              {bytes(file.size)}
              {file.size < 1024 ? null : <span className="dim"> ({file.size.toLocaleString(language())} B)</span>}
            </dd>
          </>
        ) : null}
        <dt>{t("Modified")}</dt>
        <dd>{when(file.modifiedAt)}</dd>
        {file.mode ? (
          <>
            <dt>{t("Mode")}</dt>
            <dd>
              <code>{file.mode}</code>
            </dd>
          </>
        ) : null}
        {file.target ? (
          <>
            <dt>{t("Leads to")}</dt>
            <dd>
              <code>{file.target}</code>
            </dd>
          </>
        ) : null}
        <dt>{t("Path")}</dt>
        <dd>
          <code>{store.written(file.path)}</code>
        </dd>
      </dl>
      <div className="row tool-bar">
        {directory ? (
          <Button variant="light" size="compact-sm" onClick={onOpen}>
            {t("Open")}
          </Button>
        ) : null}
        {plain || directory ? (
          <Button
            variant="default"
            size="compact-sm"
            aria-label={
              directory
                ? t("Download as zip {{name}}", { name: file.name })
                : t("Download {{name}}", { name: file.name })
            }
            onClick={onDownload}
          >
            {directory ? t("Download as zip") : t("Download")}
          </Button>
        ) : null}
        {writable ? (
          <Button variant="default" size="compact-sm" onClick={onRename}>
            {t("Rename")}
          </Button>
        ) : null}
        {writable && onRelocate ? (
          <Button variant="default" size="compact-sm" onClick={() => onRelocate("move")}>
            {t("Move")}
          </Button>
        ) : null}
        {onRelocate ? (
          <Button variant="default" size="compact-sm" onClick={() => onRelocate("copy")}>
            {t("Copy")}
          </Button>
        ) : null}
        {writable ? (
          <Button variant="outline" color="red" size="compact-sm" onClick={onRemove}>
            {t("Delete")}
          </Button>
        ) : null}
      </div>
      {plain ? <Preview key={file.path} store={store} file={file} writable={writable} onSaved={onSaved} /> : null}
    </section>
  );
}
