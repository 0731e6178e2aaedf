import { Checkbox } from "@mantine/core";
import { type KeyboardEvent, useRef } from "react";
import { t } from "../../i18n";
import { bytes, when } from "../format";
import { dirName } from "./files";
import type { FileEntry } from "./useFiles";

interface Props {
  rows: FileEntry[];
  picked: ReadonlySet<string>;
  /** The one whose details are shown. */
  at: string | null;
  /** Where each lies is told, as after a search. */
  found: boolean;
  onPick: (picked: Set<string>) => void;
  onAt: (path: string) => void;
  onOpen: (file: FileEntry) => void;
  /** F2 and Delete on a row. */
  onRename?: (path: string) => void;
  onRemove?: (paths: string[]) => void;
}

/** The left pane: entries of a directory. Arrows go up and down, space selects, Enter opens. */
export function FileTable({ rows, picked, at, found, onPick, onAt, onOpen, onRename, onRemove }: Props) {
  const body = useRef<HTMLTableSectionElement>(null);
  const last = useRef<string | null>(null);
  const all = rows.length > 0 && rows.every((r) => picked.has(r.path));

  function toggle(path: string, range: boolean) {
    const next = new Set(picked);
    const from = rows.findIndex((r) => r.path === last.current);
    const to = rows.findIndex((r) => r.path === path);
    if (range && from >= 0) for (const r of rows.slice(Math.min(from, to), Math.max(from, to) + 1)) next.add(r.path);
    else if (!next.delete(path)) next.add(path);
    last.current = path;
    onPick(next);
  }
  function keys(event: KeyboardEvent, file: FileEntry, i: number) {
    const act: Record<string, () => void> = {
      ArrowDown: () => focus(i + 1),
      ArrowUp: () => focus(i - 1),
      Home: () => focus(0),
      End: () => focus(rows.length - 1),
      " ": () => toggle(file.path, event.shiftKey),
      ...(onRename ? { F2: () => onRename(file.path) } : {}),
      ...(onRemove ? { Delete: () => onRemove(picked.has(file.path) ? [...picked] : [file.path]) } : {}),
    };
    const found = act[event.key];
    if (!found || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    found();
  }
  const focus = (i: number) => body.current?.querySelectorAll<HTMLElement>("button.row-name")[i]?.focus();

  return (
    <table className="grid" aria-label={t("Files")}>
      <thead>
        <tr>
          <th className="pick">
            <Checkbox aria-label={t("Select all")} checked={all} indeterminate={picked.size > 0 && !all} onChange={(e) => onPick(new Set(e.currentTarget.checked ? rows.map((r) => r.path) : []))} />
          </th>
          <th>{t("Name")}</th>
          <th className="num">{t("Size")}</th>
          <th className="wide">{t("Changed")}</th>
        </tr>
      </thead>
      <tbody ref={body}>
        {rows.map((f, i) => (
          <tr key={f.path} aria-selected={picked.has(f.path)} data-at={at === f.path} onClick={() => onAt(f.path)} onDoubleClick={() => onOpen(f)}>
            <td className="pick" onClick={(e) => e.stopPropagation()}>
              <Checkbox aria-label={t("Select {{name}}", { name: f.name })} checked={picked.has(f.path)} onChange={(e) => toggle(f.path, (e.nativeEvent as MouseEvent).shiftKey)} />
            </td>
            <td className="clip">
              <button type="button" className="row-name" onKeyDown={(e) => keys(e, f, i)} onFocus={() => onAt(f.path)} onClick={() => (f.type === "directory" ? onOpen(f) : onAt(f.path))}>
                {f.type === "directory" ? `${f.name}/` : f.name}
              </button>
              {f.type === "symlink" || f.type === "other" ? <span className="dim"> {t(f.type)}</span> : null}
              {found && dirName(f.path) ? <div className="dim clip">{dirName(f.path)}/</div> : null}
            </td>
            <td className="num nowrap">{f.type === "file" ? bytes(f.size) : ""}</td>
            <td className="nowrap dim wide">{when(f.modifiedAt)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
