import { Checkbox, MultiSelect, PasswordInput, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { t } from "../../i18n";
import { FormDialog } from "../admin/Form";
import { nodesOf } from "../admin/usePages";
import {
  CreateEndpoint,
  DomainsQuery,
  type Endpoint,
  type EndpointDraft,
  endpointChanges,
  endpointDraft,
  modelNames,
  UpdateEndpoint,
} from "./endpoint";

interface Props {
  endpoint: Endpoint | null;
  onClose: () => void;
  onDone: () => void;
}

const fields = ["name", "url", "key", "models", "domains"] as const;

/** Creates or changes an endpoint outside the cluster. */
export function EndpointDialog({ endpoint, onClose, onDone }: Props) {
  const [draft, setDraft] = useState<EndpointDraft>(() => endpointDraft(endpoint));
  const { data } = useLiveQuery({ query: DomainsQuery });
  const create = useAction(CreateEndpoint);
  const update = useAction(UpdateEndpoint);
  const set = (some: Partial<EndpointDraft>) => setDraft({ ...draft, ...some });
  const names = modelNames(draft);

  async function submit() {
    const { name, url, key, domains } = draft;
    const done = endpoint
      ? await update.run({ input: { id: endpoint.id, ...endpointChanges(endpoint, draft) } })
      : await create.run({
          input: { name, url, models: names, ...(key ? { key } : {}), ...(domains.length > 0 ? { domains } : {}) },
        });
    if (!done) return;
    onDone();
    onClose();
  }
  return (
    <FormDialog
      title={endpoint ? t("Edit {{name}}", { name: endpoint.name }) : t("New endpoint")}
      submit={endpoint ? t("Save") : t("Create")}
      fields={fields}
      busy={create.busy || update.busy}
      failure={create.failure ?? update.failure}
      disabled={!draft.name.trim() || !draft.url.trim() || names.length === 0}
      onClose={onClose}
      onSubmit={() => void submit()}
    >
      {(wrong) => (
        <>
          <TextInput
            label={t("Name")}
            required
            data-autofocus
            maxLength={64}
            value={draft.name}
            error={wrong.name}
            onChange={(e) => set({ name: e.currentTarget.value })}
          />
          <TextInput
            label={t("Address")}
            description={t("Such as https://api.example.com/v1. Prompts of users are sent there.")}
            required
            value={draft.url}
            error={wrong.url}
            onChange={(e) => set({ url: e.currentTarget.value })}
          />
          <Textarea
            label={t("Models")}
            description={t("Their names at the endpoint, one in each line")}
            required
            autosize
            minRows={2}
            maxRows={10}
            value={draft.models}
            error={wrong.models}
            onChange={(e) => set({ models: e.currentTarget.value })}
          />
          <PasswordInput
            label={t("Key")}
            description={
              endpoint?.hasKey
                ? t("Leave empty to keep the stored key. It is never shown.")
                : t("Sent with each request. It is stored encrypted and never shown.")
            }
            autoComplete="new-password"
            disabled={draft.noKey}
            value={draft.key}
            error={wrong.key}
            onChange={(e) => set({ key: e.currentTarget.value })}
          />
          {endpoint?.hasKey ? (
            <Checkbox
              label={t("Remove the stored key")}
              checked={draft.noKey}
              onChange={(e) => set({ noKey: e.currentTarget.checked })}
            />
          ) : null}
          <MultiSelect
            size="xs"
            label={t("Domains whose users can use it")}
            placeholder={draft.domains.length === 0 ? t("all") : undefined}
            data={nodesOf(data?.domains).map((d) => ({ value: d.id, label: d.name }))}
            value={draft.domains}
            error={wrong.domains}
            onChange={(domains) => set({ domains })}
          />
        </>
      )}
    </FormDialog>
  );
}
