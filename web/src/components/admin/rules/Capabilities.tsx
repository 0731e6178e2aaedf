import { t } from "../../../i18n";
import type { Volume } from "./volume";

/** What each volume's product can do by itself; Berth does the rest by hand or leaves it. */
export function Capabilities({ volumes }: { volumes: Volume[] }) {
  const all = [...new Set(volumes.flatMap((v) => v.capabilities))].sort();
  if (all.length === 0) return null;
  return (
    <section aria-labelledby="capabilities" className="stack small">
      <h2 id="capabilities">{t("What they can do")}</h2>
      <div className="panel scroll-x" tabIndex={0}>
        <table className="grid" aria-label={t("What they can do")}>
          <thead>
            <tr>
              <th scope="col">{t("Volume")}</th>
              {all.map((c) => <th key={c} scope="col">{t(c.replaceAll(/[-_]/g, " "))}</th>)}
            </tr>
          </thead>
          <tbody>
            {volumes.map((v) => (
              <tr key={v.id}>
                <th scope="row">{v.name}</th>
                {all.map((c) => <td key={c}>{v.capabilities.includes(c) ? <span className="tone-ok">{t("yes")}</span> : <span className="dim">{t("no")}</span>}</td>)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
