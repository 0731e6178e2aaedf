import { t } from "../../../i18n";

/** How far something is; nothing while that is not known. */
export function Progress({ done, total, label }: { done: number; total: number; label: string }) {
  if (total === 0) return null;
  return (
    <div className="row tight keep" style={{ minWidth: 120 }}>
      <div className="meter" style={{ flex: 1 }} role="progressbar" aria-label={t("Progress of {{name}}", { name: label })} aria-valuemin={0} aria-valuemax={total} aria-valuenow={done}>
        <i style={{ width: `${Math.min(100, (100 * done) / total)}%` }} />
      </div>
      <span className="dim nowrap">{t("{{done}} of {{total}}", { done, total })}</span>
    </div>
  );
}
