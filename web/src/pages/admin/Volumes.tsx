import { useState } from "react";
import { graphql } from "../../api/graphql";
import { type Column, RowButton, Table } from "../../components/admin/Table";
import { Capabilities } from "../../components/admin/rules/Capabilities";
import { VolumePanel } from "../../components/admin/rules/VolumePanel";
import { spoken } from "../../components/admin/rules/holder";
import "../../components/admin/rules/rules.css";
import { type Volume, VolumeFields, given } from "../../components/admin/rules/volume";
import { Empty, FailureNote } from "../../components/Note";
import { bytes } from "../../components/format";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { t } from "../../i18n";

const VolumesQuery = graphql(`query VolumeGrants { volumes { ...VolumeFields } }`, [VolumeFields]);

const tones: Record<string, string> = { healthy: "tone-ok", degraded: "tone-wait", unavailable: "tone-bad" };

/** Where folders live, and who may use it for what. */
export function Volumes() {
  const { data, failure, refetch } = useLiveQuery({ query: VolumesQuery });
  const [open, setOpen] = useState<string | null>(null);
  const rows = data?.volumes ?? [];
  const shown = rows.find((v) => v.id === open);
  const columns: Column<Volume>[] = [
    { head: t("Volume"), cell: (v) => <RowButton onOpen={() => setOpen(v.id)}>{v.name}</RowButton> },
    { head: t("Who may use its folders, for what"), cell: (v) => (
      <ul className="tags">
        {v.grants.map((g) => <li key={g.id}>{spoken(g)} <span className="dim">{given(g.permissions).map((x) => t(x)).join(", ")}</span></li>)}
        {v.grants.length === 0 ? <li className="tone-wait">{t("nobody")}</li> : null}
      </ul>
    ) },
    { head: t("State"), cell: (v) => <><span className={tones[v.health]}>{t(v.health)}</span>{v.health !== "healthy" && v.healthMessage ? <div className="dim">{v.healthMessage}</div> : null}</> },
    { head: t("Used"), wide: true, num: true, cell: (v) => <span className="nowrap">{v.elastic ? bytes(v.usedBytes) : t("{{used}} of {{total}}", { used: bytes(v.usedBytes), total: bytes(v.totalBytes) })}</span> },
    { head: t("Limits"), wide: true, cell: (v) => <span className="dim">{t(v.enforcement)}</span> },
    { head: t("Kind"), wide: true, cell: (v) => <span className="dim">{v.backend}</span> },
  ];
  return (
    <>
      <div className="page-head">
        <h1>{t("Volumes")}</h1>
        <span className="dim">{t("where folders live, and what they may be used for")}</span>
      </div>
      <FailureNote failure={failure} />
      {data && rows.length === 0 ? <div className="panel"><Empty title={t("No volume")}>{t("A volume appears when a storage proxy that serves it is running.")}</Empty></div> : null}
      {rows.length > 0 ? <Table label={t("Volumes")} rows={rows} columns={columns} selected={open} /> : null}
      <Capabilities volumes={rows} />
      {shown ? <VolumePanel volume={shown} onClose={() => setOpen(null)} onDone={refetch} /> : null}
    </>
  );
}
