import { Checkbox } from "@mantine/core";
import { useState } from "react";
import { useAction } from "../../hooks/useAction";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { Confirm } from "../Confirm";
import { DeleteDeployment, type DeploymentDetail } from "./serving";

/** Asks before a deployment is deleted. */
export function Remove({ deployment: d, onClose }: { deployment: DeploymentDetail; onClose: () => void }) {
  const [force, setForce] = useState(false);
  const { run, busy, failure } = useAction(DeleteDeployment);
  return (
    <Confirm
      opened
      title={t("Delete deployment {{name}}?", { name: d.name })}
      action={t("Delete")}
      typed={d.name}
      busy={busy}
      failure={failure}
      onConfirm={async () => {
        if (!(await run({ input: { id: d.id, force } }))) return;
        toast({ text: t("{{name}} is being deleted.", { name: d.name }) });
        onClose();
      }}
      onClose={onClose}
    >
      <div className="stack">
        <p>
          {t("Its {{count}} replicas end after their requests, and programs that use the model get errors.", {
            count: d.ready.totalCount,
          })}{" "}
          {t("The folder of the model stays.")}
        </p>
        <Checkbox
          label={t("Cut the requests that are in flight")}
          checked={force}
          onChange={(e) => setForce(e.currentTarget.checked)}
        />
      </div>
    </Confirm>
  );
}
