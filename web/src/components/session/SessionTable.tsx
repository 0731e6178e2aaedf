import { Checkbox } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useNow } from "../../hooks/useNow";
import { t } from "../../i18n";
import { AppButtons } from "../app/AppButtons";
import type { App } from "../app/app";
import { duration, slotsLine, when } from "../format";
import { Status } from "../Status";
import { ArrayRow } from "./ArrayRow";
import type { ArrayRowData } from "./arrays";
import { IdleBadge, type IdleState } from "./Idle";
import { TagChips } from "./Tags";
import { ended } from "./timeline";

export interface SessionRow {
  id: string;
  name: string;
  type: string;
  status: string;
  result: string;
  exitCode: number | null;
  slots: Record<string, string>;
  createdAt: string;
  startedAt: string | null;
  terminatedAt: string | null;
  image: { id: string; name: string };
  owner: { id: string; email: string } | null;
  tags: string[];
  idle: IdleState;
}

interface Props {
  rows: SessionRow[];
  picked: ReadonlySet<string>;
  onPick: (picked: Set<string>) => void;
  owners: boolean;
  /** The known apps by session. */
  apps?: ReadonlyMap<string, readonly App[]>;
  /** Arrays, each as one row, sorted by creation time among the sessions. */
  arrays?: ArrayRowData[];
}

export function SessionTable({ rows, picked, onPick, owners, apps, arrays = [] }: Props) {
  const now = useNow(rows.some((r) => !ended(r.status)));
  const open = rows.filter((r) => !ended(r.status));
  function toggle(id: string) {
    const next = new Set(picked);
    if (!next.delete(id)) next.add(id);
    onPick(next);
  }
  return (
    <div className="panel scroll-x">
      <table className="grid">
        <thead>
          <tr>
            <th className="pick">
              <Checkbox
                aria-label={t("Select all sessions that can be stopped")}
                disabled={open.length === 0}
                checked={open.length > 0 && open.every((r) => picked.has(r.id))}
                indeterminate={picked.size > 0 && !open.every((r) => picked.has(r.id))}
                onChange={(e) => onPick(new Set(e.currentTarget.checked ? open.map((r) => r.id) : []))}
              />
            </th>
            <th>{t("Session")}</th>
            <th>{t("Status")}</th>
            <th>{t("Apps")}</th>
            <th>{t("Image")}</th>
            <th>{t("Resources")}</th>
            {owners ? <th>{t("Owner")}</th> : null}
            <th className="num">{t("Time")}</th>
            <th>{t("Created")}</th>
          </tr>
        </thead>
        <tbody>
          {together(rows, arrays).map((r) =>
            "counts" in r ? (
              <ArrayRow key={r.id} array={r} owners={owners} />
            ) : (
              <tr key={r.id} aria-selected={picked.has(r.id)}>
                <td className="pick">
                  <Checkbox
                    aria-label={t("Select {{name}}", { name: r.name })}
                    disabled={ended(r.status)}
                    checked={picked.has(r.id)}
                    onChange={() => toggle(r.id)}
                  />
                </td>
                <td className="clip">
                  <Link to="/sessions/$id" params={{ id: r.id }}>
                    <b>{r.name}</b>
                  </Link>{" "}
                  <span className="dim">{r.type === "BATCH" ? t("batch") : null}</span> <TagChips tags={r.tags} />
                </td>
                <td>
                  <Status status={r.status} exitCode={r.exitCode} result={r.result} />{" "}
                  {ended(r.status) ? null : <IdleBadge idle={r.idle} now={now} />}
                </td>
                <td>{r.status === "RUNNING" ? <AppButtons session={r} apps={apps?.get(r.id) ?? []} /> : null}</td>
                <td className="clip">{r.image.name}</td>
                <td className="nowrap">{slotsLine(r.slots)}</td>
                {owners ? <td className="clip">{r.owner?.email}</td> : null}
                <td className="num nowrap">
                  {r.startedAt
                    ? duration((r.terminatedAt ? Date.parse(r.terminatedAt) : now) - Date.parse(r.startedAt))
                    : "–"}
                </td>
                <td className="nowrap dim">{when(r.createdAt)}</td>
              </tr>
            ),
          )}
        </tbody>
      </table>
    </div>
  );
}

/** Merges sessions and arrays, the newest first. */
function together(rows: SessionRow[], arrays: ArrayRowData[]): (SessionRow | ArrayRowData)[] {
  return [...rows, ...arrays].sort((a, b) => b.createdAt.localeCompare(a.createdAt));
}
