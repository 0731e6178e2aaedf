import { Button, Modal } from "@mantine/core";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { t } from "../../../i18n";
import { bytes, when } from "../../format";
import { FailureNote } from "../../Note";
import { Progress } from "../../task/Progress";
import { isUnfinished, type Task, TaskFields } from "../../task/task";
import type { Registry } from "./registry";

const SweepRegistry = graphql(
  `mutation SweepRegistry($input: SweepRegistryInput!) { sweepRegistry(input: $input) { task { subjectID ...TaskFields } } }`,
  [TaskFields],
);

interface Props {
  registry: Registry;
  /** The latest sweep. */
  task: Task | undefined;
  onClose: () => void;
  onDone: () => void;
}

/** Frees what no image of the registry needs, and shows what the last sweep has freed. */
export function Sweep({ registry, task, onClose, onDone }: Props) {
  const sweep = useAction(SweepRegistry);
  const running = task !== undefined && isUnfinished(task);
  const last = registry.lastSweep;
  const start = async (dryRun: boolean) => {
    if (await sweep.run({ input: { id: registry.id, dryRun } })) onDone();
  };
  return (
    <Modal
      opened
      onClose={onClose}
      title={<h2>{t("Space of {{name}}", { name: registry.name })}</h2>}
      closeButtonProps={{ "aria-label": t("Close") }}
    >
      <div className="stack">
        <p>
          {t(
            "A sweep removes versions without a tag whose time is over, and layers that no image needs. The registry serves meanwhile.",
          )}
        </p>
        {last ? (
          <dl className="facts" aria-label={t("Last sweep")}>
            <dt>{t("Last sweep")}</dt>
            <dd>
              {when(last.at)}
              {last.dryRun ? ` · ${t("dry run")}` : ""}
            </dd>
            <dt>{last.dryRun ? t("Would free") : t("Freed")}</dt>
            <dd>
              <b>{bytes(last.freedBytes)}</b>{" "}
              {t("Objects: {{blobs}}. Versions: {{manifests}}. Uploads: {{uploads}}.", {
                blobs: last.blobs,
                manifests: last.manifests,
                uploads: last.uploads,
              })}
            </dd>
            <dt>{t("In the registry")}</dt>
            <dd>{bytes(last.storedBytes)}</dd>
            <dt>{t("Free on its disk")}</dt>
            <dd>{bytes(last.freeBytes)}</dd>
          </dl>
        ) : (
          <p className="dim">{t("Not swept yet")}</p>
        )}
        {last && last.unclear > 0 ? (
          <p className="bad">
            {t("Manifests that cannot be read: {{count}}, such as one of {{name}}. Their repositories were left out.", {
              count: last.unclear,
              name: last.unclearIn,
            })}
          </p>
        ) : null}
        {task?.status === "FAILED" ? <p className="bad">{task.message}</p> : null}
        <FailureNote failure={sweep.failure} />
        {running ? <Progress task={task} /> : null}
        <div className="row">
          <Button variant="default" disabled={running} loading={sweep.busy} onClick={() => start(true)}>
            {t("Dry run")}
          </Button>
          <Button disabled={running} loading={sweep.busy} onClick={() => start(false)}>
            {t("Sweep now")}
          </Button>
        </div>
      </div>
    </Modal>
  );
}
