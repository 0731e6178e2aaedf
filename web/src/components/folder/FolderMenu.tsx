import { Button, Menu } from "@mantine/core";
import { useState } from "react";
import { administers, useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { TransferDialog } from "../objectstorage/TransferDialog";
import { CloneFolder, FolderSettings } from "./CreateFolder";
import type { Folder } from "./folder";
import { HandOver } from "./HandOver";
import { Leave } from "./Leave";
import { ShareDialog } from "./ShareDialog";
import { DeleteConfirm, RestoreButton, TrashConfirm } from "./Trash";

interface Props {
  folder: Folder;
  /** Called after the folder has changed or a copy was created. */
  onChanged: () => void;
  /** Called when the folder is in the trash or no longer visible to the viewer. */
  onGone: () => void;
  /** Whether the menu is a large button of a page. */
  big?: boolean;
}

type Open = "share" | "settings" | "clone" | "import" | "export" | "handOver" | "trash" | "delete" | "leave" | null;

/** The actions for a whole folder. The server reports which of them the viewer can use. */
export function FolderMenu({ folder, onChanged, onGone, big }: Props) {
  const viewer = useViewer();
  const [open, setOpen] = useState<Open>(null);
  const close = () => setOpen(null);
  const owns = folder.permissions.includes("UPDATE");
  const handsOver = owns && folder.project === null && administers(viewer);
  const ready = folder.status === "READY";
  const shared = folder.myShare?.status === "ACCEPTED" && !folder.project ? folder.myShare : null;
  const size = big ? {} : ({ size: "compact-xs" } as const);
  return (
    <>
      {ready && owns ? (
        <Button
          variant={big ? "default" : "subtle"}
          {...size}
          aria-label={t("Share {{name}}", { name: folder.name })}
          onClick={() => setOpen("share")}
        >
          {t("Share")}
        </Button>
      ) : null}
      {ready ? (
        <Menu position="bottom-end" withinPortal>
          <Menu.Target>
            <Button
              variant={big ? "default" : "subtle"}
              {...size}
              aria-label={t("More actions for {{name}}", { name: folder.name })}
            >
              {t("More")}
            </Button>
          </Menu.Target>
          <Menu.Dropdown>
            {owns ? <Menu.Item onClick={() => setOpen("settings")}>{t("Rename and settings")}</Menu.Item> : null}
            <Menu.Item onClick={() => setOpen("clone")}>{t("Clone")}</Menu.Item>
            {folder.permissions.includes("WRITE_FILES") ? (
              <Menu.Item onClick={() => setOpen("import")}>{t("Import from an object storage")}</Menu.Item>
            ) : null}
            {folder.permissions.includes("READ_FILES") ? (
              <Menu.Item onClick={() => setOpen("export")}>{t("Export to an object storage")}</Menu.Item>
            ) : null}
            {handsOver ? (
              <Menu.Item onClick={() => setOpen("handOver")}>{t("Hand over to another user")}</Menu.Item>
            ) : null}
            {shared ? <Menu.Item onClick={() => setOpen("leave")}>{t("Leave")}</Menu.Item> : null}
            {folder.permissions.includes("DELETE") ? (
              <Menu.Item color="red" onClick={() => setOpen("trash")}>
                {t("Move to trash")}
              </Menu.Item>
            ) : null}
          </Menu.Dropdown>
        </Menu>
      ) : null}
      {folder.status === "TRASH" && folder.permissions.includes("DELETE") ? (
        <>
          <RestoreButton folder={folder} onDone={onChanged} />
          <Button
            variant="subtle"
            color="red"
            size="compact-xs"
            aria-label={t("Delete permanently: {{name}}", { name: folder.name })}
            onClick={() => setOpen("delete")}
          >
            {t("Delete permanently")}
          </Button>
        </>
      ) : null}
      {open === "share" ? <ShareDialog folder={folder} onClose={close} /> : null}
      {open === "settings" ? <FolderSettings folder={folder} onClose={close} onDone={onChanged} /> : null}
      {open === "clone" ? <CloneFolder folder={folder} onClose={close} onDone={onChanged} /> : null}
      {open === "import" || open === "export" ? (
        <TransferDialog way={open} folder={folder} onClose={close} onDone={onChanged} />
      ) : null}
      {open === "handOver" ? <HandOver folder={folder} onClose={close} onDone={onChanged} /> : null}
      <TrashConfirm folder={open === "trash" ? folder : null} onClose={close} onDone={onGone} />
      <DeleteConfirm folder={open === "delete" ? folder : null} onClose={close} onDone={onGone} />
      <Leave share={open === "leave" ? shared : null} onClose={close} onLeft={onGone} />
    </>
  );
}
