import { t } from "../../i18n";

export interface Refusal {
  path: string;
  error: string;
}

export const refusals = (results: readonly { path: string; error: string | null }[]): Refusal[] =>
  results.flatMap((r) => (r.error ? [{ path: r.path, error: r.error }] : []));

/** Further rows are only counted. */
const maxRows = 20;

/** Lists the items that failed, each with its error. */
export function Refused({ rows }: { rows: Refusal[] }) {
  if (rows.length === 0) return null;
  return (
    <div className="failure" role="alert">
      <b>{t("These failed. All others are done:")}</b>
      <ul style={{ margin: 0, paddingLeft: 18, maxHeight: 180, overflow: "auto" }} tabIndex={0}>
        {rows.slice(0, maxRows).map((r) => (
          <li key={r.path}>
            <code>{r.path}</code> {r.error}
          </li>
        ))}
        {rows.length > maxRows ? <li>{t("and {{count}} more", { count: rows.length - maxRows })}</li> : null}
      </ul>
    </div>
  );
}
