import { Button } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { entityName, TrailFilters } from "../../components/admin/rules/TrailFilters";
import { type Entry, TrailRow, tone } from "../../components/admin/rules/TrailRow";
import { type Column, PagedTable, RowButton } from "../../components/admin/Table";
import "../../components/admin/rules/rules.css";
import {
  AuditQuery,
  exportUrl,
  formatMicroseconds,
  notExported,
  type TrailFilter,
  whereOf,
  wrongIn,
} from "../../components/admin/rules/trail";
import { usePages } from "../../components/admin/usePages";
import { clock, when } from "../../components/format";
import { useNames } from "../../hooks/useNames";
import { t } from "../../i18n";
import { outcomeWord } from "../../words";

/** The labels of the filters that the CSV export does not support. */
const labels: Record<keyof TrailFilter, string> = {
  from: "From",
  to: "Until",
  actor: "Actor",
  as: "Acting as",
  action: "Action",
  entity: "Object",
  result: "Result",
  request: "Request ID",
};

export function Audit() {
  const filter = useSearch({ from: "/frame/admin/audit" });
  const navigate = useNavigate({ from: "/admin/audit" });
  const [open, setOpen] = useState<Entry | null>(null);
  const narrow = (more: TrailFilter) => void navigate({ search: (old) => clean({ ...old, ...more }), replace: true });
  const wrong = Object.keys(wrongIn(filter)).length > 0;
  // The last valid filter. An invalid value is shown at its input, and the rows stay.
  const [meant, setMeant] = useState(filter);
  if (!wrong && meant !== filter) setMeant(filter);
  const pages = usePages({
    query: AuditQuery,
    variables: { where: whereOf(meant) },
    pick: (data) => data.auditEntries,
  });
  const emails = useNames([filter.actor, filter.as]);
  const without = notExported(meant);
  const today = new Date().toDateString();

  const columns: Column<Entry>[] = [
    {
      head: t("Time"),
      cell: (e) => (
        <RowButton onOpen={() => setOpen(e)}>
          <span className="nowrap">{new Date(e.at).toDateString() === today ? clock(e.at) : when(e.at)}</span>
        </RowButton>
      ),
    },
    {
      head: t("Actor"),
      cell: (e) => (
        <>
          {e.actorEmail || <span className="dim">{t("unknown")}</span>}
          {e.actedAsId ? (
            <span className="dim"> {t("as {{email}}", { email: e.actedAs?.email ?? t("another user") })}</span>
          ) : null}
        </>
      ),
    },
    { head: t("Action"), cell: (e) => <code>{e.action}</code> },
    { head: t("Object"), wide: true, cell: (e) => entityName(e.entity) },
    {
      head: t("Result"),
      cell: (e) => (
        <span className={tone(e.result)} title={e.message}>
          {outcomeWord(e.result)}
        </span>
      ),
    },
    {
      head: t("Duration"),
      wide: true,
      num: true,
      cell: (e) => <span className="nowrap">{formatMicroseconds(e.durationUs)}</span>,
    },
    { head: t("Client address"), wide: true, cell: (e) => <span className="mono dim">{e.clientAddress}</span> },
  ];
  return (
    <>
      <div className="page-head">
        <h1>{t("Audit log")}</h1>
        <span className="dim" role="status">
          {pages.total === null ? "" : t("{{count}} rows", { count: pages.total })}
        </span>
        <div className="push row">
          <Button variant="default" loading={pages.loading} onClick={pages.reload}>
            {t("Refresh")}
          </Button>
          {without.length === 0 ? (
            <Button component="a" variant="default" href={exportUrl(meant)} download="audit.csv">
              {t("Download CSV")}
            </Button>
          ) : null}
        </div>
      </div>
      <TrailFilters
        filter={filter}
        emails={emails}
        onChange={narrow}
        onClear={() => void navigate({ search: {}, replace: true })}
      />
      {without.length > 0 ? (
        <p className="dim links">
          {t("A CSV file cannot be filtered by: {{fields}}.", {
            fields: without.map((key) => t(labels[key])).join(", "),
          })}{" "}
          <a href={exportUrl(meant)} download="audit.csv">
            {t("Download without these filters")}
          </a>
        </p>
      ) : null}
      <PagedTable
        label={t("Audit log")}
        pages={pages}
        columns={columns}
        selected={open?.id}
        empty={t("No matching entries")}
      />
      {open ? (
        <TrailRow
          entry={open}
          onClose={() => setOpen(null)}
          onFilter={(more) => {
            setOpen(null);
            narrow(more);
          }}
        />
      ) : null}
    </>
  );
}

const clean = (filter: TrailFilter): TrailFilter =>
  Object.fromEntries(Object.entries(filter).filter(([, value]) => value));
