import { Select, Tabs } from "@mantine/core";
import { Link, useNavigate, useSearch } from "@tanstack/react-router";
import { useState } from "react";
import { type Period, periods, rangeOf } from "../../components/account/usage";
import { Capacity } from "../../components/statistics/Capacity";
import { Waits } from "../../components/statistics/Waits";
import { Waste } from "../../components/statistics/Waste";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { word } from "../../words";

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const stages = ["QUEUE", "PULL", "CREATE", "WAIT"] as const;

/** Statistics of what the viewer can see: their sessions, those of their projects, or the whole cluster. */
export function Statistics() {
  const search = useSearch({ from: "/frame/account/statistics" });
  const navigate = useNavigate({ from: "/account/statistics" });
  const { role } = useViewer().user;
  const cluster = role === "SUPERADMIN" || role === "MONITOR";
  const [now] = useState(() => new Date());
  const [stage, setStage] = useState<(typeof stages)[number]>("QUEUE");
  const period: Period = search.period && search.period in periods ? (search.period as Period) : "7d";
  const view = search.view ?? "waits";
  const { from, to } = rangeOf(period, now);
  const choose = (change: { view?: string; period?: string }) =>
    void navigate({ search: (o) => ({ ...o, ...change }), replace: true });
  return (
    <>
      <div className="page-head">
        <h1>{t("Statistics")}</h1>
        <div className="push row">
          <Select
            aria-label={t("Period")}
            w={170}
            allowDeselect={false}
            value={period}
            onChange={(value) => choose({ period: value ?? undefined })}
            data={Object.entries(periods).map(([value, label]) => ({ value, label: t(label) }))}
          />
        </div>
      </div>
      <Tabs value={view} onChange={(value) => choose({ view: value ?? undefined })} keepMounted={false}>
        <Tabs.List mb="md">
          <Tabs.Tab value="waits">{t("Waits")}</Tabs.Tab>
          <Tabs.Tab value="starts">{t("Starts")}</Tabs.Tab>
          <Tabs.Tab value="waste">{t("Waste")}</Tabs.Tab>
          {cluster ? <Tabs.Tab value="capacity">{t("Capacity")}</Tabs.Tab> : null}
        </Tabs.List>
        <Tabs.Panel value="waits">
          <Waits from={from} to={to} zone={zone} stage="WAIT" />
        </Tabs.Panel>
        <Tabs.Panel value="starts">
          <Select
            aria-label={t("Stage")}
            w={190}
            mb="md"
            allowDeselect={false}
            value={stage}
            onChange={(value) => setStage((value ?? "QUEUE") as (typeof stages)[number])}
            data={stages.map((value) => ({ value, label: word("StartStage", value) }))}
          />
          <Waits from={from} to={to} zone={zone} stage={stage} />
        </Tabs.Panel>
        <Tabs.Panel value="waste">
          <Waste from={from} cluster={cluster} />
        </Tabs.Panel>
        {cluster ? (
          <Tabs.Panel value="capacity">
            <Capacity from={from} to={to} zone={zone} />
          </Tabs.Panel>
        ) : null}
      </Tabs>
      <p className="dim">
        {t("You see the sessions that you can see in lists.")}{" "}
        <Link to="/account/usage" search={{}}>
          {t("Charges are on the page Usage.")}
        </Link>
      </p>
    </>
  );
}
