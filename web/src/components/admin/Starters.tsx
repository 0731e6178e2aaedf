import { graphql, type ResultOf } from "../../api/graphql";
import { t } from "../../i18n";

export const StarterFields = graphql(`
  fragment StarterFields on StarterImage { name tag description command image { id } }
`);

/** The starter images that are not registered yet, each with the command that builds it. */
export function Starters({ all }: { all: readonly ResultOf<typeof StarterFields>[] }) {
  const missing = all.filter((s) => !s.image);
  if (missing.length === 0) return null;
  return (
    <section className="panel scroll-x" aria-labelledby="starters">
      <div className="panel-head">
        <h2 id="starters">{t("Starter images")}</h2>
      </div>
      <table className="grid">
        <thead>
          <tr>
            <th>{t("Image")}</th>
            <th>{t("Description")}</th>
            <th>{t("Command")}</th>
          </tr>
        </thead>
        <tbody>
          {missing.map((s) => (
            <tr key={s.name}>
              <td>
                <b>
                  {s.name}:{s.tag}
                </b>
              </td>
              <td>{s.description}</td>
              <td>
                <code>{s.command}</code>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p className="panel-foot dim">
        {t(
          "Run a command as root in the source tree of Berth. berthd up registers the image at its next start; for another cluster, copy it to a registry and scan that.",
        )}
      </p>
    </section>
  );
}
