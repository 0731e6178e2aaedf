import { t } from "../../i18n";

const shapes = { ok: "✓", bad: "✕", done: "·" } as const;

/** A result with a shape of its own, so that colour is never alone. */
export function Outcome({ tone, children }: { tone: "ok" | "bad" | "done"; children: string }) {
  return (
    <span className={`status tone-${tone}`} style={{ whiteSpace: "normal" }}>
      <span aria-hidden="true">{shapes[tone]}</span> {t(children)}
    </span>
  );
}
