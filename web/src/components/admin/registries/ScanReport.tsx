import { Modal } from "@mantine/core";
import { useState } from "react";
import { graphql, type ResultOf } from "../../../api/graphql";
import { t } from "../../../i18n";
import { word } from "../../../words";
import { when } from "../../format";
import { FilterSelect } from "../Filter";
import { type Column, PagedTable } from "../Table";
import { usePages } from "../usePages";
import type { Registry } from "./registry";

const ResultFields = graphql(`fragment ResultFields on ScanResult { id name outcome message scannedAt }`);
const ResultsQuery = graphql(
  `
  query ScanResults($where: ScanResultWhereInput, $first: Int, $after: Cursor) {
    scanResults(first: $first, after: $after, where: $where, orderBy: [{ field: NAME }]) {
      totalCount pageInfo { hasNextPage endCursor } edges { node { ...ResultFields } }
    }
  }
`,
  [ResultFields],
);
type Result = ResultOf<typeof ResultFields>;
const outcomes = ["FAILED", "MOVED", "NEW", "SKIPPED", "GONE", "UNCHANGED"] as const;

/** What the latest scan of a registry found at each tag. */
export function ScanReport({ registry, onClose }: { registry: Registry; onClose: () => void }) {
  const [outcome, setOutcome] = useState<(typeof outcomes)[number]>();
  const pages = usePages({
    query: ResultsQuery,
    variables: { where: { registryID: registry.id, ...(outcome ? { outcome } : {}) } },
    pick: (data) => data.scanResults,
  });
  const columns: Column<Result>[] = [
    { head: t("Tag"), cell: (x) => <code style={{ overflowWrap: "anywhere" }}>{x.name}</code> },
    {
      head: t("Result"),
      cell: (x) => (
        <>
          <span className={x.outcome === "FAILED" ? "tone-bad" : ""}>{word("ScanOutcome", x.outcome)}</span>
          {x.message ? <div className="dim">{x.message}</div> : null}
        </>
      ),
    },
    { head: t("Scanned"), wide: true, cell: (x) => <span className="dim nowrap">{when(x.scannedAt)}</span> },
  ];
  return (
    <Modal
      opened
      size="xl"
      onClose={onClose}
      title={<h2>{t("Latest scan of {{name}}", { name: registry.name })}</h2>}
      closeButtonProps={{ "aria-label": t("Close") }}
    >
      <FilterSelect
        label={t("Result")}
        any={t("All")}
        value={outcome}
        onChange={(v) => setOutcome(outcomes.find((o) => o === v))}
        options={outcomes.map((o) => ({ value: o, label: word("ScanOutcome", o) }))}
      />
      <PagedTable
        label={t("Latest scan of {{name}}", { name: registry.name })}
        pages={pages}
        columns={columns}
        empty={outcome ? t("No tag matches") : t("Not scanned yet")}
      />
    </Modal>
  );
}
