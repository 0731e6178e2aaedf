import { Button, Select } from "@mantine/core";
import { useState } from "react";
import { useAction } from "../../hooks/useAction";
import { t } from "../../i18n";
import { word } from "../../words";
import { type Column, PagedTable } from "../admin/Table";
import { usePages } from "../admin/usePages";
import { when } from "../format";
import { DeliveriesQuery, type Delivery, Resend } from "./notice";

const statuses = ["WAITING", "SENT", "DEAD", "DROPPED"] as const;

/** What was sent through channels, with a button to send again what failed. */
export function Deliveries({ cluster, can }: { cluster: boolean; can: boolean }) {
  const [status, setStatus] = useState<Delivery["status"] | null>(null);
  const list = usePages({
    query: DeliveriesQuery,
    variables: { cluster, where: status ? { status } : {} },
    pick: (data) => data.noticeDeliveries,
  });
  const resend = useAction(Resend, true);
  const columns: Column<Delivery>[] = [
    { head: t("Notice"), cell: (d) => word("NoticeKind", d.kind) },
    { head: t("Channel"), cell: (d) => word("NoticeRoute", d.type) },
    {
      head: t("Status"),
      cell: (d) => (
        <>
          {word("NoticeDeliveryStatus", d.status)}
          {d.message ? <div className="dim">{d.message}</div> : null}
        </>
      ),
    },
    { head: t("Attempts"), num: true, cell: (d) => d.attempts },
    { head: t("Time"), wide: true, cell: (d) => when(d.createdAt) },
    {
      head: t("Actions"),
      num: true,
      cell: (d) =>
        can && (d.status === "DEAD" || d.status === "DROPPED") ? (
          <Button
            variant="subtle"
            size="compact-xs"
            onClick={() => void resend.run({ input: { id: d.id } }).then((done) => done && list.reload())}
          >
            {t("Send again")}
          </Button>
        ) : null,
    },
  ];
  return (
    <section className="stack" aria-label={t("Deliveries")}>
      <div className="row">
        <h2>{t("Deliveries")}</h2>
        <Select
          className="push"
          w={170}
          aria-label={t("Status")}
          value={status ?? ""}
          onChange={(value) => setStatus(statuses.find((s) => s === value) ?? null)}
          data={[
            { value: "", label: t("all") },
            ...statuses.map((value) => ({ value, label: word("NoticeDeliveryStatus", value) })),
          ]}
        />
      </div>
      <PagedTable label={t("Deliveries")} pages={list} columns={columns} empty={t("No deliveries")} />
    </section>
  );
}
