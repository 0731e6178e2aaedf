import { Button, Modal } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { t } from "../../../i18n";
import { FailureNote } from "../../Note";
import type { Registry } from "./registry";

const SetWebhook = graphql(`
  mutation SetRegistryWebhook($input: SetRegistryWebhookInput!) {
    setRegistryWebhook(input: $input) { path secret registry { id webhook } }
  }
`);

/** Switches the webhook of a registry on and off, and shows its secret once. */
export function Webhook({
  registry,
  onClose,
  onDone,
}: {
  registry: Registry;
  onClose: () => void;
  onDone: () => void;
}) {
  const action = useAction(SetWebhook);
  const [shown, setShown] = useState<{ path: string; secret: string } | null>(null);
  const [enabled, setEnabled] = useState(registry.webhook);
  const change = async (on: boolean) => {
    const done = await action.run({ input: { id: registry.id, enabled: on } });
    if (!done) return;
    const { path, secret } = done.setRegistryWebhook;
    setShown(path && secret ? { path, secret } : null);
    setEnabled(on);
    onDone();
  };
  return (
    <Modal
      opened
      onClose={onClose}
      title={<h2>{t("Webhook of {{name}}", { name: registry.name })}</h2>}
      closeButtonProps={{ "aria-label": t("Close") }}
    >
      <div className="stack">
        <p>{t("After a push, Harbor or distribution can tell the platform to read the repository at once.")}</p>
        {shown ? (
          <dl className="facts">
            <dt>{t("URL")}</dt>
            <dd>
              <code>{window.location.origin + shown.path}</code>
            </dd>
            <dt>{t("Value of Authorization")}</dt>
            <dd>
              <code>{shown.secret}</code>
            </dd>
          </dl>
        ) : null}
        {shown ? <p className="dim">{t("Copy the secret now. It is not shown again.")}</p> : null}
        <FailureNote failure={action.failure} />
        <div className="row">
          <Button loading={action.busy} onClick={() => change(true)}>
            {enabled ? t("Replace the secret") : t("Enable")}
          </Button>
          {enabled ? (
            <Button variant="default" color="red" loading={action.busy} onClick={() => change(false)}>
              {t("Disable")}
            </Button>
          ) : null}
        </div>
      </div>
    </Modal>
  );
}
