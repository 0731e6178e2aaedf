import { Button } from "@mantine/core";
import { useState } from "react";
import { t } from "../../../i18n";
import { Copy } from "../../Note";
import { Status } from "../../Status";
import { Table } from "../Table";
import { type Imported, reason } from "./imported";

const first = 100;

/** Shows the result or the preview of each row. The list can be filtered to rows with errors. */
export function ImportRows({ results, preview }: { results: readonly Imported[]; preview?: boolean }) {
  const [only, setOnly] = useState(false);
  const [all, setAll] = useState(false);
  const bad = results.filter((r) => r.status === "FAILED" || r.status === "SKIPPED");
  const rows = (only ? bad : results).map((r) => ({ ...r, id: String(r.row) }));
  const shown = all ? rows : rows.slice(0, first);
  const passwords = results.some((r) => r.password !== null);
  return (
    <>
      {bad.length > 0 && bad.length < results.length ? (
        <div className="chips">
          <button type="button" className="chip" aria-pressed={only} onClick={() => setOnly(!only)}>
            {t("Only rows that are not imported ({{n}})", { n: bad.length })}
          </button>
        </div>
      ) : null}
      <Table
        label={t("Rows in the file")}
        rows={shown}
        columns={[
          { head: t("Line"), num: true, cell: (r) => r.row },
          { head: t("E-mail"), cell: (r) => r.email || <span className="dim">{t("none")}</span> },
          { head: t("Result"), cell: (r) => <Status status={preview && r.status === "FAILED" ? "wrong" : r.status} /> },
          { head: t("Reason"), cell: (r) => reason(r) },
          ...(passwords
            ? [
                {
                  head: t("Password"),
                  cell: (r: Imported) =>
                    r.password ? (
                      <span className="row tight keep">
                        <code>{r.password}</code>{" "}
                        <Copy value={r.password} label={t("Copy the password of {{email}}", { email: r.email })} />
                      </span>
                    ) : null,
                },
              ]
            : []),
        ]}
      />
      {rows.length > shown.length ? (
        <div className="row" style={{ justifyContent: "center" }}>
          <Button variant="default" onClick={() => setAll(true)}>
            {t("Show all {{n}}", { n: rows.length })}
          </Button>
        </div>
      ) : null}
    </>
  );
}
