import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { t } from "../../i18n";
import { Confirm } from "../Confirm";
import { canCancel, cancelWord, canRetry, isUnfinished, type Task, TaskFields } from "./task";

const CancelTask = graphql(
  `mutation CancelTask($input: CancelTaskInput!) { cancelTask(input: $input) { task { ...TaskFields } } }`,
  [TaskFields],
);
const RetryTask = graphql(
  `mutation RetryTask($input: RetryTaskInput!) { retryTask(input: $input) { task { ...TaskFields } } }`,
  [TaskFields],
);

/** Cancels an unfinished task, and retries one that failed or was cancelled. */
export function TaskButtons({ task, onChanged }: { task: Task; onChanged?: () => void }) {
  const cancel = useAction(CancelTask);
  const retry = useAction(RetryTask, true);
  const [confirming, setConfirming] = useDisclosure(false);
  const name = task.title || task.kind;
  const input = { input: { id: task.id } };
  const unfinished = isUnfinished(task);
  const close = () => {
    cancel.clear();
    setConfirming.close();
  };
  return (
    <>
      {canRetry(task) ? (
        <Button
          variant="subtle"
          size="compact-xs"
          loading={retry.busy}
          aria-label={t("Retry {{name}}", { name })}
          onClick={async () => {
            if (await retry.run(input)) onChanged?.();
          }}
        >
          {t("Retry")}
        </Button>
      ) : null}
      {canCancel(task) ? (
        <Button
          variant="subtle"
          color="red"
          size="compact-xs"
          aria-label={unfinished ? t("Cancel {{name}}", { name }) : t("Abandon {{name}}", { name })}
          onClick={setConfirming.open}
        >
          {unfinished ? t("Cancel") : t("Abandon")}
        </Button>
      ) : null}
      <Confirm
        opened={confirming}
        title={unfinished ? t("Cancel {{name}}?", { name }) : t("Abandon {{name}}?", { name })}
        action={unfinished ? t("Cancel task") : t("Abandon task")}
        busy={cancel.busy}
        failure={cancel.failure}
        onClose={close}
        onConfirm={async () => {
          if (!(await cancel.run(input))) return;
          close();
          onChanged?.();
        }}
      >
        {t(cancelWord(task.kind))}
      </Confirm>
    </>
  );
}
