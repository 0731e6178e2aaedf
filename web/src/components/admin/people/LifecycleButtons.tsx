import { Button } from "@mantine/core";
import { useState } from "react";
import type { Failure } from "../../../api/errors";
import { t } from "../../../i18n";
import { Confirm } from "../../Confirm";
import { FailureNote } from "../../Note";

interface Props {
  name: string;
  active: boolean;
  /** The effect of each action, as text. */
  deactivated: string;
  purged: string;
  busy: boolean;
  failure: Failure | null;
  /** Both return whether the action succeeded. */
  onActive: (active: boolean) => Promise<boolean>;
  onPurge: () => Promise<boolean>;
  onClear: () => void;
}

/** Deactivates, reactivates or purges a domain or a project. */
export function LifecycleButtons({
  name,
  active,
  deactivated,
  purged,
  busy,
  failure,
  onActive,
  onPurge,
  onClear,
}: Props) {
  const [confirming, setConfirming] = useState<"stop" | "purge" | null>(null);
  const close = () => {
    setConfirming(null);
    onClear();
  };
  const closeAfter = async (work: Promise<boolean>) => {
    if (await work) setConfirming(null);
  };
  return (
    <>
      {active ? (
        <Button variant="default" size="compact-sm" onClick={() => setConfirming("stop")}>
          {t("Deactivate")}
        </Button>
      ) : (
        <Button size="compact-sm" loading={busy && !confirming} onClick={() => void onActive(true)}>
          {t("Activate")}
        </Button>
      )}
      <Button variant="default" size="compact-sm" onClick={() => setConfirming("purge")}>
        {t("Purge")}
      </Button>
      {confirming ? null : <FailureNote failure={failure} />}
      <Confirm
        opened={confirming === "stop"}
        title={t("Deactivate {{name}}?", { name })}
        action={t("Deactivate")}
        busy={busy}
        failure={failure}
        onConfirm={() => void closeAfter(onActive(false))}
        onClose={close}
      >
        <p>{deactivated}</p>
      </Confirm>
      <Confirm
        opened={confirming === "purge"}
        title={t("Purge {{name}}?", { name })}
        action={t("Purge permanently")}
        typed={name}
        busy={busy}
        failure={failure}
        onConfirm={() => void closeAfter(onPurge())}
        onClose={close}
      >
        <p>{purged}</p>
      </Confirm>
    </>
  );
}
