import { t } from "../../i18n";

const shapes = { ok: "✓", bad: "✕", done: "·" } as const;

/** Shows a result with a shape, so that color is never the only difference. */
export function Outcome({ tone, children }: { tone: "ok" | "bad" | "done"; children: string }) {
  return (
    <span className={`status tone-${tone}`} style={{ whiteSpace: "normal" }}>
      <span aria-hidden="true">{shapes[tone]}</span> {t(children)}
    </span>
  );
}
