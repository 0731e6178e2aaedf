import { t } from "../../i18n";
import { bytes } from "../format";
import { Meter } from "../Meter";
import { enforcementWord, filled, type HeldScope } from "./folder";

/** Shows the usage of the quota scopes of the viewer and of their projects, on each volume. */
export function QuotaBars({ scopes }: { scopes: HeldScope[] }) {
  if (scopes.length === 0) return null;
  return (
    <section className="panel" aria-label={t("Storage")}>
      <div className="quotas">
        {scopes.map((s) => {
          const part = filled(s.usedBytes, s.limitBytes);
          const name = s.project
            ? t("Project {{name}} on {{volume}}", { name: s.project, volume: s.volume.name })
            : t("Your storage on {{volume}}", { volume: s.volume.name });
          return (
            <div key={s.id} className="stack small" style={{ gap: 4 }}>
              <div className="row">
                <span>{name}</span>
                <span className="push nowrap">
                  {s.usedBytes === null ? t("not measured yet") : bytes(s.usedBytes)}
                  {s.limitBytes === null ? null : <span className="dim"> / {bytes(s.limitBytes)}</span>}
                </span>
              </div>
              {s.limitBytes === null ? null : <Meter label={name} used={s.usedBytes} limit={s.limitBytes} full={0.9} />}
              <span className={part >= 1 ? "bad" : "dim"}>
                {s.limitBytes === null
                  ? t("no limit")
                  : part >= 1
                    ? t("full; the limit is {{kept}}", { kept: t(enforcementWord(s.enforcement)) })
                    : t("the limit is {{kept}}", { kept: t(enforcementWord(s.enforcement)) })}
                {s.limitInodes === null
                  ? null
                  : ` · ${t("{{used}} of {{limit}} files", { used: s.usedInodes ?? "?", limit: s.limitInodes })}`}
              </span>
            </div>
          );
        })}
      </div>
    </section>
  );
}
