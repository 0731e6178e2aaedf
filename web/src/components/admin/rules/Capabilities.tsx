import { t } from "../../../i18n";
import { word } from "../../../words";
import { Tick } from "../Tick";
import { capabilityHint, capabilityWord, type Volume } from "./volume";

/** Shows what the storage product of each volume supports. Berth does the rest itself or does not offer it. */
export function Capabilities({ volumes }: { volumes: Volume[] }) {
  const all = [...new Set(volumes.flatMap((v) => v.capabilities))].sort();
  if (all.length === 0) return null;
  return (
    <section aria-labelledby="capabilities" className="stack small">
      <h2 id="capabilities">{t("Capabilities")}</h2>
      <p className="dim">
        {t(
          "The storage does these things itself, at once or without load on the storage proxy. Berth does all others file by file, or not at all.",
        )}
      </p>
      <div className="panel scroll-x" tabIndex={0} role="group" aria-label={t("Capabilities")}>
        <table className="grid matrix">
          <thead>
            <tr>
              <th scope="col">{t("Capability")}</th>
              {volumes.map((v) => (
                <th key={v.id} scope="col">
                  {v.name}
                  <div className="dim note">{v.backend}</div>
                </th>
              ))}
            </tr>
          </thead>
          <tbody>
            {all.map((c) => (
              <tr key={c}>
                <th scope="row">
                  {t(capabilityWord(c))}
                  <div className="dim note">{t(capabilityHint(c))}</div>
                </th>
                {volumes.map((v) => (
                  <td key={v.id}>
                    <Tick on={v.capabilities.includes(c)} />
                  </td>
                ))}
              </tr>
            ))}
            <tr>
              <th scope="row">{t("Limit enforcement")}</th>
              {volumes.map((v) => (
                <td key={v.id}>{word("LimitEnforcement", v.enforcement)}</td>
              ))}
            </tr>
          </tbody>
        </table>
      </div>
    </section>
  );
}
