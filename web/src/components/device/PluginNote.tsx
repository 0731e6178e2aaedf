import { t } from "../../i18n";
import { word, type words } from "../../words";
import { Status } from "../Status";

export interface PluginView {
  name: string;
  version: string;
  state: string;
  message: string;
  restarts: number;
  checks: { name: string; level: keyof (typeof words)["PluginCheckLevel"]; text: string }[];
}

/** Reports whether a plugin does not run, misses devices, or misses a requirement of its devices. */
export function hasProblem(p: PluginView): boolean {
  return p.state !== "RUNNING" || p.message !== "" || p.checks.some((c) => c.level === "ERROR");
}

const tones: Record<string, string> = { ok: "dim", warning: "tone-wait", error: "tone-bad" };

/** Shows the state of a plugin and the results of its checks. */
export function PluginNote({ plugin: p }: { plugin: PluginView }) {
  return (
    <div>
      <p>
        {t("plugin {{name}} {{version}}", { name: p.name, version: p.version })} <Status status={p.state} />
        {p.restarts > 0 ? (
          <span className="dim">
            {" "}
            · {t("restarted {{times}}", { times: t("{{count}} times", { count: p.restarts }) })}
          </span>
        ) : null}
        {p.message ? <span className={p.state === "DISABLED" ? "dim" : "tone-bad"}> · {p.message}</span> : null}
      </p>
      {p.checks.length === 0 ? null : (
        <ul aria-label={t("Checks of plugin {{name}}", { name: p.name })}>
          {p.checks.map((c) => (
            <li key={c.name} className={tones[c.level]}>
              {word("PluginCheckLevel", c.level)}: {c.name}
              {c.text ? ` · ${c.text}` : ""}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
