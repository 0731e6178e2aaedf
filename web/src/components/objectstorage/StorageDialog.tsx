import { Checkbox, PasswordInput, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { toast } from "../../hooks/useToasts";
import { administers, useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { word } from "../../words";
import { FormDialog } from "../admin/Form";
import { changes, type Draft, draftOf, needsSecret, type Storage, StorageFields } from "./storage";

const CreateStorage = graphql(
  `
  mutation CreateObjectStorage($input: CreateObjectStorageInput!) {
    createObjectStorage(input: $input) { objectStorage { ...StorageFields } }
  }
`,
  [StorageFields],
);
const UpdateStorage = graphql(
  `
  mutation UpdateObjectStorage($input: UpdateObjectStorageInput!) {
    updateObjectStorage(input: $input) { objectStorage { ...StorageFields } }
  }
`,
  [StorageFields],
);
export const TestStorage = graphql(
  `
  mutation TestObjectStorage($input: TestObjectStorageInput!) {
    testObjectStorage(input: $input) { ok message field objectStorage { id name } }
  }
`,
);

const fields = [
  "name",
  "endpoint",
  "region",
  "bucket",
  "prefix",
  "addressing",
  "accessKeyId",
  "accessKeyID",
  "secret",
  "domain",
] as const;

/** Adds or changes an object storage, and tests the connection by listing a page of it. */
export function StorageDialog({
  storage,
  onClose,
  onDone,
}: {
  storage: Storage | null;
  onClose: () => void;
  onDone: () => void;
}) {
  const viewer = useViewer();
  const [draft, setDraft] = useState<Draft>(() => draftOf(storage));
  const create = useAction(CreateStorage);
  const update = useAction(UpdateStorage);
  const test = useAction(TestStorage, true);
  const set = (some: Partial<Draft>) => setDraft({ ...draft, ...some });
  const secretRequired = draft.secret === "" && (storage ? needsSecret(storage, draft) : draft.accessKeyID !== "");

  async function stored(): Promise<string | null> {
    if (storage) {
      const input = changes(storage, draft);
      if (Object.keys(input).length === 0) return storage.id;
      return (await update.run({ input: { id: storage.id, ...input } }))?.updateObjectStorage.objectStorage.id ?? null;
    }
    const { shared, secret, accessKeyID, ...input } = draft;
    const key = accessKeyID === "" ? {} : { accessKeyID, secret };
    const done = await create.run({
      input: { ...input, ...key, ...(shared ? { domain: viewer.user.domain.id } : {}) },
    });
    return done?.createObjectStorage.objectStorage.id ?? null;
  }
  async function submit() {
    const id = await stored();
    if (!id) return;
    onDone();
    onClose();
    const asked = (await test.run({ input: { id } }))?.testObjectStorage;
    if (asked?.ok) toast({ text: t("{{name}} responds.", { name: draft.name }) });
    else if (asked)
      toast({
        failure: {
          code: "FAILED_PRECONDITION",
          message: t("{{name}} was saved, but the test failed: {{why}}", {
            name: draft.name,
            why: asked.message ?? "",
          }),
        },
      });
  }
  return (
    <FormDialog
      title={storage ? t("Edit {{name}}", { name: storage.name }) : t("New object storage")}
      submit={storage ? t("Save") : t("Add")}
      fields={fields}
      busy={create.busy || update.busy}
      failure={create.failure ?? update.failure}
      disabled={!draft.name.trim() || !draft.bucket.trim() || secretRequired}
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
            label={t("Endpoint")}
            description={t("Such as https://s3.eu-central-1.amazonaws.com, without the bucket.")}
            required
            value={draft.endpoint}
            error={wrong.endpoint}
            onChange={(e) => set({ endpoint: e.currentTarget.value })}
          />
          <div className="row" style={{ alignItems: "flex-start" }}>
            <TextInput
              style={{ flex: 1 }}
              label={t("Bucket")}
              required
              value={draft.bucket}
              error={wrong.bucket}
              onChange={(e) => set({ bucket: e.currentTarget.value })}
            />
            <TextInput
              style={{ flex: 1 }}
              label={t("Region")}
              placeholder={t("detected from the endpoint")}
              value={draft.region}
              error={wrong.region}
              onChange={(e) => set({ region: e.currentTarget.value })}
            />
          </div>
          <TextInput
            label={t("Prefix")}
            description={t("Only objects below this prefix can be accessed.")}
            placeholder={t("the whole bucket")}
            value={draft.prefix}
            error={wrong.prefix}
            onChange={(e) => set({ prefix: e.currentTarget.value })}
          />
          <Select
            label={t("Bucket addressing")}
            allowDeselect={false}
            value={draft.addressing}
            error={wrong.addressing}
            onChange={(v) => set({ addressing: v === "VIRTUAL" ? "VIRTUAL" : "PATH" })}
            data={[
              { value: "PATH", label: word("ObjectAddressing", "PATH") },
              { value: "VIRTUAL", label: word("ObjectAddressing", "VIRTUAL") },
            ]}
          />
          <TextInput
            label={t("Access key")}
            description={t("Leave empty for access without credentials.")}
            autoComplete="off"
            value={draft.accessKeyID}
            error={wrong.accessKeyId ?? wrong.accessKeyID}
            onChange={(e) => set({ accessKeyID: e.currentTarget.value })}
          />
          {draft.accessKeyID ? (
            <PasswordInput
              label={t("Secret")}
              autoComplete="new-password"
              required={secretRequired || !storage}
              value={draft.secret}
              error={wrong.secret}
              onChange={(e) => set({ secret: e.currentTarget.value })}
              description={
                storage && !secretRequired
                  ? t("Leave empty to keep the stored secret. It is never shown.")
                  : storage
                    ? t("A new endpoint or access key requires the secret again.")
                    : t("It is stored encrypted and never shown.")
              }
            />
          ) : null}
          <Checkbox
            label={t("Read-only: exports are not allowed")}
            checked={draft.readOnly}
            onChange={(e) => set({ readOnly: e.currentTarget.checked })}
          />
          {!storage && administers(viewer) ? (
            <Checkbox
              label={t("For all users of the domain {{name}}", { name: viewer.user.domain.name })}
              checked={draft.shared}
              error={wrong.domain}
              onChange={(e) => set({ shared: e.currentTarget.checked })}
            />
          ) : null}
        </>
      )}
    </FormDialog>
  );
}
