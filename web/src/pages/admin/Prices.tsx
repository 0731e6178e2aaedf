import { Button, Checkbox } from "@mantine/core";
import { useState } from "react";
import { graphql, type ResultOf } from "../../api/graphql";
import { PriceDialog } from "../../components/admin/money/PriceDialog";
import { isSuper } from "../../components/admin/nav";
import { type Column, Table } from "../../components/admin/Table";
import { Confirm } from "../../components/Confirm";
import { isMemory, when } from "../../components/format";
import { Empty, FailureNote } from "../../components/Note";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { useNow } from "../../hooks/useNow";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { slotName } from "../../slots";
import { word } from "../../words";

const PricesQuery = graphql(`
  query Prices($history: Boolean!) {
    server { currency }
    prices(history: $history) {
      id kind slot amount validFrom resourceGroup { id name } deployment { id name } creator { id email }
    }
  }
`);
const DeletePrice = graphql(`mutation DeletePrice($input: DeletePriceInput!) { deletePrice(input: $input) { id } }`);

type Row = ResultOf<typeof PricesQuery>["prices"][number];

const nameOf = (p: Row) => (p.kind === "SLOT_HOUR" ? slotName(p.slot) : word("PriceKind", p.kind));

const unitOf = (p: Row) =>
  p.kind !== "SLOT_HOUR" ? t("per 1,000 tokens") : isMemory(p.slot) ? t("per GiB and hour") : t("per hour");

/** Shows the price list. Superadmins can change it. */
export function Prices() {
  const viewer = useViewer();
  const [history, setHistory] = useState(false);
  const { data, failure, refetch } = useLiveQuery({ query: PricesQuery, variables: { history } });
  const remove = useAction(DeletePrice);
  const [setting, setSetting] = useState(false);
  const [deleting, setDeleting] = useState<Row | null>(null);
  const now = useNow(true, 30_000);
  const rows = data?.prices ?? [];
  const currency = data?.server.currency ?? "";
  const later = (p: Row) => Date.parse(p.validFrom) > now;
  const columns: Column<Row>[] = [
    { head: t("Price of"), cell: (p) => <b>{nameOf(p)}</b> },
    {
      head: t("For"),
      cell: (p) => p.resourceGroup?.name ?? p.deployment?.name ?? <span className="dim">{t("all")}</span>,
    },
    {
      head: t("Amount"),
      num: true,
      cell: (p) => (
        <>
          {p.amount} {currency} <span className="dim">{unitOf(p)}</span>
        </>
      ),
    },
    {
      head: t("Valid"),
      cell: (p) =>
        later(p) ? (
          <span className="tone-wait">{t("from {{time}}", { time: when(p.validFrom) })}</span>
        ) : (
          t("since {{time}}", { time: when(p.validFrom) })
        ),
    },
    { head: t("Set by"), wide: true, cell: (p) => p.creator?.email ?? <span className="dim">–</span> },
    {
      head: t("Actions"),
      num: true,
      cell: (p) =>
        later(p) ? (
          <Button
            variant="subtle"
            color="red"
            size="compact-xs"
            aria-label={t("Delete {{name}}", { name: nameOf(p) })}
            onClick={() => {
              remove.clear();
              setDeleting(p);
            }}
          >
            {t("Delete")}
          </Button>
        ) : null,
    },
  ];
  async function confirmed() {
    if (!deleting || !(await remove.run({ input: { id: deleting.id } }))) return;
    setDeleting(null);
    refetch();
  }
  return (
    <>
      <div className="page-head">
        <h1>{t("Prices")}</h1>
        <span className="dim">{t("A price never changes: a new one replaces it from now on or later.")}</span>
      </div>
      <div className="row">
        <Checkbox
          label={t("Show replaced prices")}
          checked={history}
          onChange={(e) => setHistory(e.currentTarget.checked)}
        />
        {isSuper(viewer) ? (
          <Button className="push" onClick={() => setSetting(true)}>
            {t("Set a price")}
          </Button>
        ) : null}
      </div>
      <FailureNote failure={failure} />
      {data && rows.length === 0 ? (
        <div className="panel">
          <Empty title={t("Nothing has a price")}>
            {t("With prices, usage shows costs, and budgets can limit them.")}
          </Empty>
        </div>
      ) : null}
      {rows.length > 0 ? (
        <Table label={t("Prices")} rows={rows} columns={isSuper(viewer) ? columns : columns.slice(0, -1)} />
      ) : null}
      {setting ? <PriceDialog currency={currency} onClose={() => setSetting(false)} onDone={refetch} /> : null}
      <Confirm
        opened={deleting !== null}
        title={t("Delete {{name}}?", { name: deleting ? nameOf(deleting) : "" })}
        action={t("Delete")}
        busy={remove.busy}
        failure={remove.failure}
        onClose={() => setDeleting(null)}
        onConfirm={() => void confirmed()}
      >
        {t("The price that applies now stays in force.")}
      </Confirm>
    </>
  );
}
