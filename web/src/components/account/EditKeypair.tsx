import { NumberInput, TextInput } from "@mantine/core";
import { useState } from "react";
import { useAction } from "../../hooks/useAction";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { FormDialog } from "../admin/Form";
import { isSuper } from "../admin/nav";
import { defaultRateLimit, type Keypair, UpdateKeypair } from "./keypair";

/** Edits the name of a keypair and, for administrators, its rate limit. */
export function EditKeypair({ keypair, onClose }: { keypair: Keypair; onClose: () => void }) {
  const limits = isSuper(useViewer());
  const { run, busy, failure } = useAction(UpdateKeypair);
  const [name, setName] = useState(keypair.name);
  const [rate, setRate] = useState<number | string>(keypair.rateLimit ?? "");
  const wanted = rate === "" ? null : Number(rate);

  async function save() {
    const changed =
      wanted === keypair.rateLimit ? {} : wanted === null ? { clearRateLimit: true } : { rateLimit: wanted };
    if (
      await run({
        input: { id: keypair.id, ...(name.trim() === keypair.name ? {} : { name: name.trim() }), ...changed },
      })
    )
      onClose();
  }
  return (
    <FormDialog
      title={t("Edit {{name}}", { name: keypair.name })}
      failure={failure}
      fields={["name", "rateLimit"]}
      submit={t("Save")}
      busy={busy}
      onClose={onClose}
      disabled={!name.trim() || (name.trim() === keypair.name && wanted === keypair.rateLimit)}
      onSubmit={() => void save()}
    >
      {(wrong) => (
        <>
          <TextInput
            label={t("Name")}
            required
            data-autofocus
            maxLength={64}
            value={name}
            error={wrong.name}
            onChange={(e) => setName(e.currentTarget.value)}
          />
          {limits ? (
            <NumberInput
              label={t("Requests per 15 minutes")}
              description={t("Leave empty for the default of {{n}}.", { n: defaultRateLimit })}
              allowDecimal={false}
              allowNegative={false}
              hideControls
              value={rate}
              error={wrong.rateLimit}
              onChange={setRate}
            />
          ) : null}
        </>
      )}
    </FormDialog>
  );
}
