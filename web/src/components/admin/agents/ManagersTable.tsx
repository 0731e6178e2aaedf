import { graphql } from "../../../api/graphql";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { t } from "../../../i18n";
import { when } from "../../format";
import { Table } from "../Table";

const ManagersQuery = graphql(`
  query Managers { cluster { managers { id address version leads } storageProxies { name version lastSeenAt } } }
`);

/** Lists the managers with their versions, because an upgrade replaces them one by one. */
export function ManagersTable() {
  const { data } = useLiveQuery({ query: ManagersQuery });
  const rows = [
    ...(data?.cluster.managers ?? []).map((m) => ({
      id: m.id,
      name: m.address,
      role: t("manager"),
      version: m.version,
      state: m.leads ? t("leader") : t("alive"),
    })),
    ...(data?.cluster.storageProxies ?? []).map((p) => ({
      id: p.name,
      name: p.name,
      role: t("storage proxy"),
      version: p.version,
      state: t("last seen {{at}}", { at: when(p.lastSeenAt) }),
    })),
  ];
  if (rows.length === 0) return null;
  return (
    <Table
      label={t("Managers and storage proxies")}
      rows={rows}
      columns={[
        { head: t("Managers and storage proxies"), cell: (r) => <b>{r.name}</b> },
        { head: t("Role"), cell: (r) => r.role },
        { head: t("Version"), cell: (r) => r.version || <span className="dim">{t("unknown")}</span> },
        { head: t("State"), cell: (r) => r.state },
      ]}
    />
  );
}
