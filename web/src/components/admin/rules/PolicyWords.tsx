import { t } from "../../../i18n";
import { type Policy, words } from "./policy";

/** Shows the limits of a policy as text. */
export function PolicyWords({ policy }: { policy: Policy }) {
  const all = words(policy);
  if (all.length === 0) return <span className="dim">{t("nothing")}</span>;
  return (
    <ul className="tags">
      {all.map(([key, values]) => (
        <li key={key + JSON.stringify(values)}>{t(key, values)}</li>
      ))}
    </ul>
  );
}
