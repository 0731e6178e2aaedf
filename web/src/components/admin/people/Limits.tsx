import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useLiveQuery } from "../../../hooks/useLiveQuery";
import { t } from "../../../i18n";
import { FailureNote } from "../../Note";
import { slotName } from "../../format";
import { Part } from "../Panel";
import { GroupPick } from "../Pickers";
import { Table } from "../Table";
import { shown } from "../rules/amounts";

const LimitsQuery = graphql(`
  query LimitsOf($domain: ID, $project: ID, $user: ID, $resourceGroup: ID) {
    effectiveLimits(domain: $domain, project: $project, user: $user, resourceGroup: $resourceGroup) {
      what limit used assignable scope holder policy resourceGroup withinProject
    }
  }
`);

/** What binds somebody in the end, and what is left of it. */
export function Limits({ at }: { at: { domain?: string; project?: string; user?: string } }) {
  const [resourceGroup, setGroup] = useState<string | null>(null);
  const { data, failure } = useLiveQuery({ query: LimitsQuery, variables: { ...at, resourceGroup } });
  const rows = (data?.effectiveLimits ?? []).map((l) => ({ ...l, id: l.what }));
  return (
    <Part title={t("What binds in the end")} aside={<GroupPick bare label={t("In resource group")} placeholder={t("In resource group")} w={190} value={resourceGroup} onChange={setGroup} />}>
      <FailureNote failure={failure} />
      {data && rows.length === 0 ? <p className="dim">{t("Nothing is limited.")}</p> : null}
      {rows.length > 0 ? (
        <Table label={t("What binds in the end")} rows={rows}
          columns={[
            { head: t("Of what"), cell: (l) => what(l.what) },
            { head: t("Used"), num: true, cell: (l) => shown(l.what, l.used) },
            { head: t("Limit"), num: true, cell: (l) => shown(l.what, l.limit) },
            { head: t("By"), cell: (l) => <>{l.policy} <span className="dim">{t("of {{scope}} {{holder}}", { scope: t(l.scope), holder: l.holder })}</span></> },
          ]} />
      ) : null}
    </Part>
  );
}

const named = /^(pending )?([a-z0-9-]+\.[a-z]+|cpu|mem)$/;

/** Slots by the name people know, the rest as it is called. */
function what(text: string): string {
  const slot = named.exec(text);
  const name = slot ? slotName(slot[2]!) : t(text);
  return slot?.[1] ? t("{{name}}, waiting", { name }) : name.charAt(0).toUpperCase() + name.slice(1);
}
