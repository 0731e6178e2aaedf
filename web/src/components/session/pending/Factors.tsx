import { t } from "../../../i18n";
import type { Report } from "./report";

const levels: Record<string, string> = { DOMAIN: "the domain", PROJECT: "the project", USER: "the user" };

const words: Record<string, string> = {
  LIFO: "The newest session goes first in this group.",
  DRF: "The user with the smallest share goes first in this group.",
  FAIR_SHARE: "The user with the least recent usage goes first in this group.",
};

/** Explains the position of a session in the queue, if it is not the order of creation. */
export function Factors({ order }: { order: NonNullable<Report["order"]> }) {
  return (
    <div className="stack small">
      <h3>{t("Queue order")}</h3>
      <p className="dim">{t(words[order.order] ?? order.order)}</p>
      {order.levels.length > 0 ? (
        <table className="grid" aria-label={t("Current shares")}>
          <thead>
            <tr>
              <th scope="col">{t("Scope")}</th>
              <th scope="col" className="num">
                {t("Used")}
              </th>
              <th scope="col" className="num">
                {t("Weight")}
              </th>
              <th scope="col" className="num">
                {t("Factor")}
              </th>
            </tr>
          </thead>
          <tbody>
            {order.levels.map((l) => (
              <tr key={l.scope}>
                <td>{t(levels[l.scope] ?? l.scope)}</td>
                <td className="num">{`${Number((100 * l.usage).toPrecision(2))} %`}</td>
                <td className="num">{l.weight}</td>
                <td className="num">{l.factor.toFixed(3)}</td>
              </tr>
            ))}
          </tbody>
        </table>
      ) : null}
    </div>
  );
}
