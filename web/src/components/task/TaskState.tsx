import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { t } from "../../i18n";
import { Status } from "../Status";
import { Progress } from "./Progress";
import { isUnfinished, usePolledTasks } from "./task";

/** Shows the progress of a task that was just started. The user can close it at any time. */
export function TaskState({ id, onClose }: { id: string; onClose: () => void }) {
  const task = usePolledTasks([id])[0];
  return (
    <div className="stack" role="status">
      {task ? (
        <>
          <div className="row">
            <Status status={task.status} />
            <Progress task={task} />
          </div>
          {task.message ? <p className={task.status === "FAILED" ? "bad" : "dim"}>{task.message}</p> : null}
        </>
      ) : (
        <p className="dim">{t("Loading…")}</p>
      )}
      {task && !isUnfinished(task) ? null : (
        <p className="dim">
          {t("It continues even if you leave this page.")} <Link to="/admin/tasks">{t("All tasks")}</Link>
        </p>
      )}
      <div className="row" style={{ justifyContent: "flex-end" }}>
        <Button autoFocus onClick={onClose}>
          {t("Done")}
        </Button>
      </div>
    </div>
  );
}
