import { Button } from "@mantine/core";
import type { ReactNode } from "react";
import { t } from "../../i18n";
import { Empty, FailureNote } from "../Note";
import type { Pages } from "./usePages";

export interface Column<Row> {
  head: string;
  cell: (row: Row) => ReactNode;
  num?: boolean;
  /** Hidden on narrow screens. */
  wide?: boolean;
}

interface Props<Row> {
  /** Description of the rows for screen readers. */
  label: string;
  rows: Row[];
  columns: Column<Row>[];
  selected?: string | null;
}

/** A table of objects. The first column is the name of the row. */
export function Table<Row extends { id: string }>({ label, rows, columns, selected }: Props<Row>) {
  return (
    <div className="panel scroll-x">
      <table className="grid" aria-label={label}>
        <thead>
          <tr>
            {columns.map((c) => (
              <th key={c.head} scope="col" className={look(c)}>
                {c.head}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.id} aria-selected={selected === row.id || undefined}>
              {columns.map((c) => (
                <td key={c.head} className={look(c)}>
                  {c.cell(row)}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const look = <Row,>(c: Column<Row>) => [c.num ? "num" : "", c.wide ? "wide" : ""].join(" ").trim() || undefined;

interface PagedProps<Row> extends Omit<Props<Row>, "rows"> {
  pages: Pages<Row>;
  /** The text for an empty list or a filter without a match. */
  empty: string;
  children?: ReactNode;
}

/** A table of a long list, with a button that loads the next page. */
export function PagedTable<Row extends { id: string }>({ pages, empty, children, ...table }: PagedProps<Row>) {
  const { rows, total, loading, failure, more } = pages;
  return (
    <>
      <FailureNote failure={failure} />
      {rows.length === 0 && !failure ? (
        <div className="panel">
          {loading ? <p className="empty dim">{t("Loading…")}</p> : <Empty title={empty}>{children}</Empty>}
        </div>
      ) : null}
      {rows.length > 0 ? <Table {...table} rows={rows} /> : null}
      {rows.length > 0 && total !== null && total > rows.length ? (
        <div className="row" style={{ justifyContent: "center" }}>
          <span className="dim" role="status">
            {t("{{shown}} of {{total}}", { shown: rows.length, total })}
          </span>
          {more ? (
            <Button variant="default" loading={loading} onClick={more}>
              {t("Show more")}
            </Button>
          ) : null}
        </div>
      ) : null}
    </>
  );
}

/** The name of a row, as a button that opens its details. */
export function RowButton({ children, onOpen }: { children: ReactNode; onOpen: () => void }) {
  return (
    <button type="button" className="row-name" onClick={onOpen}>
      {children}
    </button>
  );
}
