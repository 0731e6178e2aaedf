import { t } from "../../../i18n";
import { word, type words } from "../../../words";
import { formatLimit, limitName, perObject } from "./amounts";

/** A row of effectiveLimits. */
export interface Limit {
  what: string;
  limit: string;
  used: string;
  assignable: string;
  scope: keyof typeof words.HolderScope;
  holder: string;
  policy: string;
  resourceGroup: string | null;
  withinProject: string | null;
}

/** Shows the effective limits: how much of each is used, and which policy sets it. */
export function LimitsTable({ list }: { list: readonly Limit[] }) {
  return (
    <table className="grid">
      <thead>
        <tr>
          <th scope="col">{t("Resource")}</th>
          <th scope="col" className="num">
            {t("Used")}
          </th>
          <th scope="col" className="num">
            {t("Limit")}
          </th>
          <th scope="col" className="num">
            {t("Remaining")}
          </th>
          <th scope="col">{t("Policy")}</th>
        </tr>
      </thead>
      <tbody>
        {list.map((l) => (
          <tr key={l.what}>
            <td>{t(...limitName(l.what))}</td>
            <td className="num nowrap">
              {perObject.has(l.what) ? <span className="dim">{t("per session")}</span> : formatLimit(l.what, l.used)}
            </td>
            <td className="num nowrap">{formatLimit(l.what, l.limit)}</td>
            <td className={Number(l.assignable) === 0 ? "num nowrap tone-wait" : "num nowrap"}>
              {perObject.has(l.what) ? "" : formatLimit(l.what, l.assignable)}
            </td>
            <td>
              <b>{l.policy}</b>{" "}
              <span className="dim">
                {t("of {{scope}} {{holder}}", { scope: word("HolderScope", l.scope), holder: l.holder })}
                {l.resourceGroup ? ` ${t("only in resource group {{name}}", { name: l.resourceGroup })}` : ""}
                {l.withinProject ? ` ${t("only in project {{name}}", { name: l.withinProject })}` : ""}
              </span>
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}
