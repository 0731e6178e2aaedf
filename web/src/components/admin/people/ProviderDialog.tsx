import { Checkbox, PasswordInput, TextInput } from "@mantine/core";
import { useState } from "react";
import { useAction } from "../../../hooks/useAction";
import { useViewer } from "../../../hooks/useViewer";
import { t } from "../../../i18n";
import { Cli } from "../../Note";
import { FormDialog } from "../Form";
import { DomainPick, ProjectPick } from "../Pickers";
import {
  CreateProvider,
  callbackOf,
  changedProvider,
  newProvider,
  type Provider,
  type ProviderDraft,
  providerDraftOf,
  providerWrong,
  UpdateProvider,
} from "./providerdraft";

const fields = [
  "name",
  "displayName",
  "issuer",
  "clientId",
  "clientSecret",
  "scopes",
  "emailDomains",
  "domain",
  "project",
];

interface Props {
  /** Null creates a new provider. */
  provider: Provider | null;
  onClose: () => void;
  onDone: () => void;
}

export function ProviderDialog({ provider, onClose, onDone }: Props) {
  const viewer = useViewer();
  const create = useAction(CreateProvider);
  const update = useAction(UpdateProvider);
  const [draft, setDraft] = useState(() => providerDraftOf(provider, viewer.user.domain.id));
  const set = (more: Partial<ProviderDraft>) => setDraft({ ...draft, ...more });
  const unread = providerWrong(draft);
  const domain = provider?.domain ?? viewer.user.domain;
  const complete =
    draft.name.trim() && draft.issuer.trim() && draft.clientID.trim() && (provider || draft.clientSecret);

  async function save() {
    const done = provider
      ? await update.run({ input: changedProvider(provider.id, draft) })
      : await create.run({ input: newProvider(draft) });
    if (!done) return;
    onDone();
    onClose();
  }
  return (
    <FormDialog
      title={provider ? t("Edit {{name}}", { name: provider.name }) : t("New identity provider")}
      size={600}
      submit={provider ? t("Save") : t("Create")}
      fields={fields}
      busy={create.busy || update.busy}
      failure={create.failure ?? update.failure}
      disabled={!complete || Object.keys(unread).length > 0}
      onClose={onClose}
      onSubmit={() => void save()}
    >
      {(refused) => {
        const wrong: Record<string, string | undefined> = {
          ...refused,
          ...Object.fromEntries(Object.entries(unread).map(([k, v]) => [k, t(v)])),
        };
        return (
          <>
            <div className="pair">
              <TextInput
                label={t("Name")}
                description={t("Used in the login URL.")}
                required
                disabled={provider !== null}
                data-autofocus={provider ? undefined : true}
                value={draft.name}
                error={wrong.name}
                onChange={(e) => set({ name: e.currentTarget.value })}
              />
              <TextInput
                label={t("Name on the login page")}
                description={t("Leave empty to use the name.")}
                value={draft.displayName}
                error={wrong.displayName}
                onChange={(e) => set({ displayName: e.currentTarget.value })}
              />
            </div>
            <TextInput
              label={t("Issuer")}
              required
              disabled={provider !== null}
              placeholder="https://login.example.org"
              value={draft.issuer}
              error={wrong.issuer}
              onChange={(e) => set({ issuer: e.currentTarget.value })}
            />
            <div className="pair">
              <TextInput
                label={t("Client ID")}
                required
                value={draft.clientID}
                error={wrong.clientId}
                onChange={(e) => set({ clientID: e.currentTarget.value })}
              />
              <PasswordInput
                label={t("Client secret")}
                required={!provider}
                placeholder={provider ? t("unchanged") : undefined}
                autoComplete="off"
                value={draft.clientSecret}
                error={wrong.clientSecret}
                onChange={(e) => set({ clientSecret: e.currentTarget.value })}
              />
            </div>
            {draft.name.trim() ? (
              <div className="stack small">
                <span>{t("Redirect URL to register with the provider")}</span>
                <Cli line={callbackOf(location.origin, draft.name.trim())} />
              </div>
            ) : null}
            <TextInput
              label={t("Additional scopes")}
              value={draft.scopes}
              error={wrong.scopes}
              onChange={(e) => set({ scopes: e.currentTarget.value })}
            />
            <Checkbox
              label={t("Create accounts on first login")}
              checked={draft.autoProvision}
              onChange={(e) => set({ autoProvision: e.currentTarget.checked })}
            />
            <TextInput
              label={t("Domains of verified e-mails")}
              description={draft.autoProvision ? undefined : t("Applies only if accounts are created on first login.")}
              placeholder="corp.example"
              value={draft.emailDomains}
              error={wrong.emailDomains}
              onChange={(e) => set({ emailDomains: e.currentTarget.value })}
            />
            <div className="pair">
              <DomainPick
                label={t("Domain of new users")}
                required
                disabled={provider !== null}
                value={draft.domain}
                chosen={{ value: domain.id, label: domain.name }}
                error={wrong.domain}
                onChange={(id) => id && set({ domain: id, project: null })}
              />
              <ProjectPick
                key={draft.domain}
                label={t("Project of new users")}
                placeholder={t("none")}
                domain={draft.domain}
                value={draft.project}
                chosen={provider?.project ? { value: provider.project.id, label: provider.project.name } : null}
                error={wrong.project}
                onChange={(project) => set({ project })}
              />
            </div>
          </>
        );
      }}
    </FormDialog>
  );
}
