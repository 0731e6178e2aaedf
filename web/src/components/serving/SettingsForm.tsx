import { Checkbox, NumberInput, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { useAction } from "../../hooks/useAction";
import { toast } from "../../hooks/useToasts";
import { administers, useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { Form } from "../admin/Form";
import { parseTime, printTime } from "../admin/rules/amounts";
import { type DeploymentDetail, inLine, UpdateDeployment } from "./serving";

/** Edits who can use a deployment and the limits of its replicas. */
export function SettingsForm({ deployment: d, editable }: { deployment: DeploymentDetail; editable: boolean }) {
  const viewer = useViewer();
  const [description, setDescription] = useState(d.description);
  const [shared, setShared] = useState(d.shared);
  const [open, setOpen] = useState(d.open);
  const [recorded, setRecorded] = useState(d.recorded);
  const [concurrency, setConcurrency] = useState<number | string>(d.concurrency);
  const [drain, setDrain] = useState(printTime(d.drainSeconds));
  const { run, busy, failure } = useAction(UpdateDeployment);
  const seconds = parseTime(drain);
  const wrongDrain = seconds === null ? t("Enter a time such as 30s, 15min or 2h.") : undefined;

  async function submit() {
    if (seconds === null) return;
    const input = { id: d.id, description, shared, concurrency: Number(concurrency), drainSeconds: seconds };
    const changed = { ...(open === d.open ? {} : { open }), ...(recorded === d.recorded ? {} : { recorded }) };
    if (await run({ input: { ...input, ...changed } })) toast({ text: t("The settings were saved.") });
  }
  return (
    <section className="panel pad stack" aria-label={t("Settings")}>
      <h2>{t("Use")}</h2>
      <fieldset className="legendless" disabled={!editable}>
        <Form
          failure={failure}
          fields={["description", "shared", "open", "recorded", "concurrency", "drainSeconds"]}
          submit={t("Save")}
          plain
          busy={busy}
          disabled={!editable}
          onSubmit={() => void submit()}
        >
          {(wrong) => (
            <>
              <Textarea
                label={t("Description")}
                autosize
                maxLength={1000}
                value={description}
                error={wrong.description}
                onChange={(e) => setDescription(e.currentTarget.value)}
              />
              <Checkbox
                label={t("Members of the project {{name}} can see it and send requests", { name: d.project.name })}
                checked={shared}
                error={wrong.shared}
                onChange={(e) => setShared(e.currentTarget.checked)}
              />
              {administers(viewer) || d.open ? (
                <Checkbox
                  label={t("Requests need no key")}
                  description={t("Everyone who reaches the address can use the model.")}
                  checked={open}
                  error={wrong.open}
                  onChange={(e) => setOpen(e.currentTarget.checked)}
                />
              ) : null}
              {viewer.user.id === d.owner.id || d.recorded ? (
                <Checkbox
                  label={t("Requests and answers are recorded for the owner")}
                  description={t("Everyone who sends requests can see that. Only the owner can read the records.")}
                  checked={recorded}
                  error={wrong.recorded}
                  onChange={(e) => setRecorded(e.currentTarget.checked)}
                />
              ) : null}
              <div className="pairs wider">
                <NumberInput
                  label={t("Requests for each replica")}
                  inputWrapperOrder={inLine}
                  description={t("at a time; 0 = no limit")}
                  min={0}
                  max={10000}
                  allowDecimal={false}
                  value={concurrency}
                  error={wrong.concurrency}
                  onChange={setConcurrency}
                />
                <TextInput
                  label={t("Time for the last requests")}
                  inputWrapperOrder={inLine}
                  description={t("of a replica that ends")}
                  value={drain}
                  error={wrong.drainSeconds ?? wrongDrain}
                  onChange={(e) => setDrain(e.currentTarget.value)}
                />
              </div>
            </>
          )}
        </Form>
      </fieldset>
    </section>
  );
}
