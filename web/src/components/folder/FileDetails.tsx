import { Button } from "@mantine/core";
import type { FileEntry } from "../../api/files";
import { t } from "../../i18n";
import { word } from "../../words";
import { bytes, when } from "../format";
import { Preview } from "./preview/Preview";

interface Props {
  folder: string;
  file: FileEntry;
  writes: boolean;
  onClose: () => void;
  onOpen: () => void;
  onDownload: () => void;
  onRename: () => void;
  onRelocate: (kind: "move" | "copy") => void;
  onRemove: () => void;
  onSaved: () => void;
}

/** The right pane: one entry, what may be done with it, and what is in it. */
export function FileDetails({
  folder,
  file,
  writes,
  onClose,
  onOpen,
  onDownload,
  onRename,
  onRelocate,
  onRemove,
  onSaved,
}: Props) {
  const directory = file.type === "DIRECTORY";
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
              {file.size < 1024 ? null : <span className="dim"> ({file.size.toLocaleString()} B)</span>}
            </dd>
          </>
        ) : null}
        <dt>{t("Modified")}</dt>
        <dd>{when(file.modifiedAt)}</dd>
        <dt>{t("Path")}</dt>
        <dd>
          <code>{file.path}</code>
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
        {writes ? (
          <Button variant="default" size="compact-sm" onClick={onRename}>
            {t("Rename")}
          </Button>
        ) : null}
        {writes ? (
          <Button variant="default" size="compact-sm" onClick={() => onRelocate("move")}>
            {t("Move")}
          </Button>
        ) : null}
        <Button variant="default" size="compact-sm" onClick={() => onRelocate("copy")}>
          {t("Copy")}
        </Button>
        {writes ? (
          <Button variant="outline" color="red" size="compact-sm" onClick={onRemove}>
            {t("Delete")}
          </Button>
        ) : null}
      </div>
      {plain ? <Preview key={file.path} folder={folder} file={file} writes={writes} onSaved={onSaved} /> : null}
    </section>
  );
}
