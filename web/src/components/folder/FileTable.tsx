import { Checkbox } from "@mantine/core";
import { useVirtualizer } from "@tanstack/react-virtual";
import { type KeyboardEvent, useEffect, useLayoutEffect, useMemo, useRef } from "react";
import type { FileEntry } from "../../api/files";
import { dirName } from "../../api/path";
import { t } from "../../i18n";
import { word } from "../../words";
import { bytes, when } from "../format";
import { opensAsDirectory } from "./files";

/** The row heights of folder.css, in pixels. */
const rowHeight = 33;
const foundHeight = 52;

interface Props {
  rows: readonly FileEntry[];
  picked: ReadonlySet<string>;
  /** The path of the entry whose details are shown. */
  at: string | null;
  /** Whether the rows are search results, which show the directory of each file. */
  found: boolean;
  onPick: (picked: Set<string>) => void;
  onAt: (path: string) => void;
  onOpen: (file: FileEntry) => void;
  /** Called for F2; onRemove is called for Delete. */
  onRename?: (path: string) => void;
  onRemove?: (paths: string[]) => void;
  /** Called when the last row is visible and more rows can be loaded. */
  onEnd?: () => void;
}

/**
 * The left pane: the entries of a directory. Only visible rows are rendered. The arrow keys move, space selects, and
 * Enter opens.
 */
export function FileTable({ rows, picked, at, found, onPick, onAt, onOpen, onRename, onRemove, onEnd }: Props) {
  const body = useRef<HTMLTableSectionElement>(null);
  const last = useRef<string | null>(null);
  const wanted = useRef<number | null>(null);
  const box = useRef<HTMLDivElement>(null);
  const height = found ? foundHeight : rowHeight;
  const drawn = useVirtualizer({
    count: rows.length,
    estimateSize: () => height,
    getScrollElement: () => box.current,
    overscan: 20,
    // The sticky header covers one row.
    scrollPaddingEnd: height,
  });
  const inSight = drawn.getVirtualItems();
  const first = inSight[0]?.index ?? 0;
  const end = (inSight.at(-1)?.index ?? -1) + 1;
  const before = inSight[0]?.start ?? 0;
  const after = drawn.getTotalSize() - (inSight.at(-1)?.end ?? 0);
  useLayoutEffect(() => drawn.measure(), [drawn, height]);
  const atEnd = end === rows.length;
  useEffect(() => {
    if (atEnd) onEnd?.();
  }, [atEnd, rows.length]);
  const all = useMemo(() => rows.length > 0 && rows.every((r) => picked.has(r.path)), [rows, picked]);

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
      PageDown: () => focus(i + 15),
      PageUp: () => focus(i - 15),
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
  function focus(i: number) {
    if (rows.length === 0) return;
    wanted.current = Math.max(0, Math.min(rows.length - 1, i));
    reach();
  }
  /**
   * Focuses the wanted row once it is rendered. It may need a second scroll: after the first one, the focused row is
   * gone and the new rows are not rendered yet, so the list was too short.
   */
  function reach() {
    if (wanted.current === null) return;
    drawn.scrollToIndex(wanted.current);
    const button = body.current?.querySelector<HTMLElement>(
      `tr[aria-rowindex="${wanted.current + 2}"] button.row-name`,
    );
    if (!button) return;
    wanted.current = null;
    button.focus({ preventScroll: true });
  }
  useLayoutEffect(reach);

  return (
    <div className="list" ref={box}>
      <table
        className={`grid files${found ? " found" : ""}`}
        aria-label={t("Files")}
        aria-rowcount={onEnd ? -1 : rows.length + 1}
      >
        <thead>
          <tr aria-rowindex={1}>
            <th className="pick">
              <Checkbox
                aria-label={t("Select all")}
                checked={all}
                indeterminate={picked.size > 0 && !all}
                onChange={(e) => onPick(new Set(e.currentTarget.checked ? rows.map((r) => r.path) : []))}
              />
            </th>
            <th>{t("Name")}</th>
            <th className="num size">{t("Size")}</th>
            <th className="wide changed">{t("Modified")}</th>
          </tr>
        </thead>
        <tbody ref={body}>
          <Gap key={`before ${before}`} height={before} />
          {rows.slice(first, end).map((f, n) => (
            <tr
              key={f.path}
              aria-rowindex={first + n + 2}
              aria-selected={picked.has(f.path)}
              data-at={at === f.path}
              onClick={() => onAt(f.path)}
              onDoubleClick={() => onOpen(f)}
            >
              <td className="pick" onClick={(e) => e.stopPropagation()}>
                <Checkbox
                  aria-label={t("Select {{name}}", { name: f.name })}
                  checked={picked.has(f.path)}
                  onChange={(e) => toggle(f.path, (e.nativeEvent as MouseEvent).shiftKey)}
                />
              </td>
              <td className="clip">
                <button
                  type="button"
                  className="row-name"
                  onKeyDown={(e) => keys(e, f, first + n)}
                  onFocus={() => onAt(f.path)}
                  onClick={() => (opensAsDirectory(f) ? onOpen(f) : onAt(f.path))}
                >
                  {opensAsDirectory(f) ? `${f.name}/` : f.name}
                </button>
                {f.type === "SYMLINK" || f.type === "OTHER" ? (
                  <span className="dim"> {word("FileType", f.type)}</span>
                ) : null}
                {found ? <div className="dim clip">{dirName(f.path) ? `${dirName(f.path)}/` : ""}</div> : null}
              </td>
              <td className="num nowrap">{f.type === "FILE" ? bytes(f.size) : ""}</td>
              <td className="nowrap dim wide">{when(f.modifiedAt)}</td>
            </tr>
          ))}
          <Gap key={`after ${after}`} height={after} />
        </tbody>
      </table>
    </div>
  );
}

/**
 * Takes the space of rows that are not rendered. Its key contains its height, because Chromium does not always notice
 * that the height of a row has changed. It has no cell for the last column, which a narrow page hides: a wider row
 * would show that column again.
 */
function Gap({ height }: { height: number }) {
  return height > 0 ? (
    <tr aria-hidden="true" className="gap">
      <td colSpan={3} style={{ height }} />
    </tr>
  ) : null;
}
