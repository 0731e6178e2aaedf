import { language, t } from "../../i18n";
import { bytes } from "../format";
import { countsBytes, type Task } from "./task";

/** Shows the progress of a task in its unit; nothing while that is unknown. */
export function Progress({ task }: { task: Pick<Task, "kind" | "title" | "done" | "total"> }) {
  const { kind, title, done, total } = task;
  if (total === 0) return null;
  const counted = countsBytes(kind) ? bytes : (n: number) => n.toLocaleString(language());
  return (
    <div className="row tight keep" style={{ minWidth: 140 }}>
      <div
        className="meter"
        style={{ flex: 1 }}
        role="progressbar"
        aria-label={t("Progress of {{name}}", { name: title })}
        aria-valuemin={0}
        aria-valuemax={total}
        aria-valuenow={done}
      >
        <i style={{ width: `${Math.min(100, (100 * done) / total)}%` }} />
      </div>
      <span className="dim nowrap">{t("{{done}} of {{total}}", { done: counted(done), total: counted(total) })}</span>
    </div>
  );
}
