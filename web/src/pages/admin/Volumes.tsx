import { useState } from "react";
import { graphql } from "../../api/graphql";
import { Capabilities } from "../../components/admin/rules/Capabilities";
import { holderText } from "../../components/admin/rules/holder";
import { VolumeMatrix } from "../../components/admin/rules/VolumeMatrix";
import { VolumePanel } from "../../components/admin/rules/VolumePanel";
import { type Column, RowButton, Table } from "../../components/admin/Table";
import { nodesOf } from "../../components/admin/usePages";
import "../../components/admin/rules/rules.css";
import { type Volume, VolumeFields } from "../../components/admin/rules/volume";
import { bytes } from "../../components/format";
import { Meter } from "../../components/Meter";
import { Empty, FailureNote } from "../../components/Note";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { t } from "../../i18n";
import { stateWord, word } from "../../words";

const VolumesQuery = graphql(
  `query VolumeGrants { volumes(first: 100, orderBy: [{ field: NAME }]) { edges { node { ...VolumeFields } } } }`,
  [VolumeFields],
);

const tones: Record<string, string> = { HEALTHY: "tone-ok", DEGRADED: "tone-wait", UNAVAILABLE: "tone-bad" };

/** Returns the read and write throughput, as far as the storage product reports it. */
function pace({ performance: p }: Volume): string {
  if (p === null) return t("not reported");
  const flow = (n: number | null, key: string) => (n === null ? [] : [t(key, { rate: `${bytes(n)}/s` })]);
  return (
    [...flow(p.readBytesPerSecond, "{{rate}} read"), ...flow(p.writeBytesPerSecond, "{{rate}} written")].join(" · ") ||
    t("not reported")
  );
}

/** Lists the volumes with their state, and the permissions on their folders. */
export function Volumes() {
  const { data, failure, refetch } = useLiveQuery({ query: VolumesQuery });
  const [open, setOpen] = useState<string | null>(null);
  const rows = nodesOf(data?.volumes);
  const shown = rows.find((v) => v.id === open);
  const columns: Column<Volume>[] = [
    { head: t("Volume"), cell: (v) => <RowButton onOpen={() => setOpen(v.id)}>{v.name}</RowButton> },
    {
      head: t("State"),
      cell: (v) => (
        <>
          <span className={tones[v.health]}>{stateWord(v.health).toLowerCase()}</span>
          {v.healthMessage ? <div className="dim">{v.healthMessage}</div> : null}
        </>
      ),
    },
    {
      head: t("Used"),
      num: true,
      cell: (v) => (
        <span className="nowrap">
          {bytes(v.usedBytes)}
          {v.elastic ? (
            <span className="dim"> {t("no fixed size")}</span>
          ) : (
            <span className="dim"> / {bytes(v.totalBytes)}</span>
          )}
          {v.elastic ? null : (
            <Meter
              label={t("Space on {{name}}", { name: v.name })}
              used={v.usedBytes}
              limit={v.totalBytes}
              full={0.9}
            />
          )}
        </span>
      ),
    },
    { head: t("Throughput"), wide: true, cell: (v) => <span className="dim nowrap">{pace(v)}</span> },
    {
      head: t("Who can use it"),
      wide: true,
      cell: (v) =>
        v.grants.length === 0 ? (
          <span className="tone-wait">{t("no one")}</span>
        ) : (
          <span className="dim">
            {v.grants.slice(0, 3).map(holderText).join(", ")}
            {v.grants.length > 3 ? " …" : ""}
          </span>
        ),
    },
    {
      head: t("Limits"),
      wide: true,
      cell: (v) => <span className="dim">{word("LimitEnforcement", v.enforcement)}</span>,
    },
    { head: t("Type"), wide: true, cell: (v) => <span className="dim">{v.backend}</span> },
  ];
  return (
    <>
      <div className="page-head">
        <h1>{t("Volumes")}</h1>
        <span className="dim">{t("where folders are stored, and who can use them")}</span>
      </div>
      <FailureNote failure={failure} />
      {data && rows.length === 0 ? (
        <div className="panel">
          <Empty title={t("No volume")}>{t("A volume appears when a storage proxy that serves it starts.")}</Empty>
        </div>
      ) : null}
      {rows.length > 0 ? <Table label={t("Volumes")} rows={rows} columns={columns} selected={open} /> : null}
      {rows.length > 0 ? <VolumeMatrix volumes={rows} onOpen={setOpen} /> : null}
      <Capabilities volumes={rows} />
      {shown ? <VolumePanel volume={shown} onClose={() => setOpen(null)} onDone={refetch} /> : null}
    </>
  );
}
