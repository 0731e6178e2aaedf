import { Fragment } from "react";
import { t } from "../../../i18n";
import { Tick } from "../Tick";
import { holderText } from "./holder";
import { atoms, type Volume } from "./volume";

/** Shows permissions on the folders of each volume: a row per volume and holder, a column per permission. */
export function VolumeMatrix({ volumes, onOpen }: { volumes: Volume[]; onOpen: (id: string) => void }) {
  return (
    <section aria-labelledby="may" className="stack small">
      <h2 id="may">{t("Access by domain, project and user")}</h2>
      <p className="dim">
        {t("Grants to everyone, the domain, the projects and the user add up. They limit every role.")}
      </p>
      <div className="panel scroll-x" tabIndex={0} role="group" aria-label={t("Access by domain, project and user")}>
        <table className="grid matrix">
          <thead>
            <tr>
              <th scope="col">{t("Volume and grantee")}</th>
              {atoms.map((a) => (
                <th key={a.value} scope="col">
                  {t(a.label)}
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {volumes.map((v) => (
              <Fragment key={v.id}>
                <tr>
                  <th scope="rowgroup" colSpan={atoms.length + 1}>
                    <button
                      type="button"
                      className="linkish"
                      aria-label={t("Access to {{name}}", { name: v.name })}
                      onClick={() => onOpen(v.id)}
                    >
                      {v.name}
                    </button>
                    {v.grants.length === 0 ? <span className="tone-wait note"> {t("no one can use it")}</span> : null}
                  </th>
                </tr>
                {v.grants.map((g) => (
                  <tr key={g.id}>
                    <th scope="row" className="inner">
                      {holderText(g)}
                    </th>
                    {atoms.map((a) => (
                      <td key={a.value}>
                        <Tick on={g.permissions.includes(a.value)} />
                      </td>
                    ))}
                  </tr>
                ))}
              </Fragment>
            ))}
          </tbody>
        </table>
      </div>
    </section>
  );
}
