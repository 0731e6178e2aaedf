import { Button, Select } from "@mantine/core";
import { useNavigate, useSearch } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { useQuery } from "urql";
import { fromGraphQL } from "../../api/errors";
import {
  csvOf,
  type Dimension,
  dimensions,
  type Period,
  type Pivoted,
  periods,
  pivot,
  rangeOf,
  steps,
  UsageReportQuery,
} from "../../components/account/usage";
import { isMemory, slotHours } from "../../components/format";
import { money, sumMoney } from "../../components/money";
import { Empty, FailureNote } from "../../components/Note";
import { save } from "../../components/save";
import { useCurrency } from "../../hooks/useCurrency";
import { t } from "../../i18n";
import { slotName } from "../../slots";
import { word } from "../../words";

const most = 500;

const costText = (r: Pivoted) => (r.cost === null ? t("no price") : `${money(r.cost)}${r.unpriced ? " +" : ""}`);
const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Shows what the sessions that the viewer can see were charged, grouped. */
export function Usage() {
  const search = useSearch({ from: "/frame/account/usage" });
  const navigate = useNavigate({ from: "/account/usage" });
  const [now] = useState(() => new Date());
  const period: Period = search.period && search.period in periods ? (search.period as Period) : "month";
  const chosen = dimensions.find((d) => d === search.by?.toUpperCase()) ?? "PROJECT";
  const step = steps.find((d) => d === search.step?.toUpperCase());
  const by: Dimension[] = step ? [step, chosen] : [chosen];
  const { from, to } = rangeOf(period, now);
  const [{ data, error, fetching }] = useQuery({
    query: UsageReportQuery,
    variables: { input: { from: from.toISOString(), to: to.toISOString(), by, timeZone: zone } },
    requestPolicy: "network-only",
  });
  const rows = data?.usageReport ?? [];
  const table = useMemo(() => pivot(rows), [rows]);
  const currency = useCurrency();
  const total = sumMoney(table.rows.map((r) => r.cost ?? "0"));
  const priced = table.rows.some((r) => r.cost !== null);
  const choose = (change: { by?: string; step?: string; period?: string }) =>
    void navigate({ search: (o) => ({ ...o, ...change }), replace: true });
  return (
    <>
      <div className="page-head">
        <h1>{t("Usage")}</h1>
        <div className="push row">
          <Select
            aria-label={t("Period")}
            w={160}
            allowDeselect={false}
            value={period}
            onChange={(value) => choose({ period: value ?? undefined })}
            data={Object.entries(periods).map(([value, label]) => ({ value, label: t(label) }))}
          />
          <Select
            aria-label={t("Group by")}
            w={170}
            allowDeselect={false}
            value={chosen}
            onChange={(value) => choose({ by: value?.toLowerCase() })}
            data={dimensions.map((value) => ({
              value,
              label: t("by {{what}}", { what: word("UsageDimension", value).toLowerCase() }),
            }))}
          />
          <Select
            aria-label={t("Steps of time")}
            w={150}
            value={step ?? ""}
            onChange={(value) => choose({ step: value?.toLowerCase() || undefined })}
            data={[
              { value: "", label: t("in all") },
              ...steps.map((value) => ({
                value,
                label: t("per {{step}}", { step: word("UsageDimension", value).toLowerCase() }),
              })),
            ]}
          />
          <Button
            variant="default"
            disabled={rows.length === 0}
            onClick={() => save(`usage-${from.toISOString().slice(0, 10)}.csv`, csvOf(rows, by))}
          >
            {t("Save as CSV")}
          </Button>
        </div>
      </div>
      <FailureNote failure={error ? fromGraphQL(error) : null} />
      {data && rows.length === 0 && !fetching ? (
        <div className="panel">
          <Empty title={t("No charges in this period")}>
            {t("A session is charged for its slots from its start until its end.")}
          </Empty>
        </div>
      ) : null}
      {rows.length > 0 ? (
        <section className="panel scroll-x" aria-label={t("Usage")} tabIndex={0}>
          <table className="grid">
            <thead>
              <tr>
                {by.map((d) => (
                  <th key={d}>{word("UsageDimension", d)}</th>
                ))}
                {table.slots.map((s) => (
                  <th key={s} className="num">
                    {slotName(s)}, {isMemory(s) ? t("GiB-hours") : t("hours")}
                  </th>
                ))}
                {priced ? (
                  <th className="num">
                    {t("Cost")}, {currency}
                  </th>
                ) : null}
              </tr>
            </thead>
            <tbody>
              {table.rows.slice(0, most).map((r) => (
                <tr key={r.keys.map((k) => k.value).join("\t")}>
                  {r.keys.map((k, i) => (
                    <td key={by[i]}>
                      {k.label || (k.value ? <code>{k.value}</code> : <span className="dim">–</span>)}
                    </td>
                  ))}
                  {table.slots.map((s) => (
                    <td key={s} className="num">
                      {r.charged[s] ? slotHours(s, r.charged[s]) : ""}
                    </td>
                  ))}
                  {priced ? <td className="num">{costText(r)}</td> : null}
                </tr>
              ))}
            </tbody>
            {priced ? (
              <tfoot>
                <tr>
                  <th scope="row" colSpan={by.length + table.slots.length}>
                    {t("All")}
                  </th>
                  <td className="num">{money(total)}</td>
                </tr>
              </tfoot>
            ) : null}
          </table>
        </section>
      ) : null}
      <p className="dim">
        {table.rows.length > most
          ? `${t("The first {{count}} rows are shown; the CSV has all.", { count: most })} `
          : ""}
        {table.rows.some((r) => r.cost !== null && r.unpriced)
          ? `${t("A plus means that a part of the charges had no price.")} `
          : ""}
        {t("You see the sessions that you can see in lists. Days begin at midnight in {{zone}}.", { zone })}
      </p>
    </>
  );
}
