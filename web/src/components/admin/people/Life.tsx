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
export function Life({ name, active, deactivated, purged, busy, failure, onActive, onPurge, onClear }: Props) {
  const [asked, ask] = useState<"stop" | "purge" | null>(null);
  const close = () => {
    ask(null);
    onClear();
  };
  const done = async (work: Promise<boolean>) => {
    if (await work) ask(null);
  };
  return (
    <>
      {active ? (
        <Button variant="default" size="compact-sm" onClick={() => ask("stop")}>
          {t("Deactivate")}
        </Button>
      ) : (
        <Button size="compact-sm" loading={busy && !asked} onClick={() => void onActive(true)}>
          {t("Activate")}
        </Button>
      )}
      <Button variant="default" size="compact-sm" onClick={() => ask("purge")}>
        {t("Purge")}
      </Button>
      {asked ? null : <FailureNote failure={failure} />}
      <Confirm
        opened={asked === "stop"}
        title={t("Deactivate {{name}}?", { name })}
        action={t("Deactivate")}
        busy={busy}
        failure={failure}
        onConfirm={() => void done(onActive(false))}
        onClose={close}
      >
        <p>{deactivated}</p>
      </Confirm>
      <Confirm
        opened={asked === "purge"}
        title={t("Purge {{name}}?", { name })}
        action={t("Purge permanently")}
        typed={name}
        busy={busy}
        failure={failure}
        onConfirm={() => void done(onPurge())}
        onClose={close}
      >
        <p>{purged}</p>
      </Confirm>
    </>
  );
}
