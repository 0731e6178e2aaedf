import { Button, Checkbox, Modal, PasswordInput, TextInput } from "@mantine/core";
import { useState } from "react";
import { byField } from "../../api/errors";
import { graphql } from "../../api/graphql";
import { Confirm } from "../../components/Confirm";
import { when } from "../../components/format";
import { Empty, FailureNote } from "../../components/Note";
import { useAction } from "../../hooks/useAction";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";

const CreateRegistry = graphql(
  `mutation CreateRegistry($input: CreateRegistryInput!) { createRegistry(input: $input) { registry { id name } } }`,
);
const UpdateRegistry = graphql(
  `
  mutation UpdateRegistry($input: UpdateRegistryInput!) {
    updateRegistry(input: $input) { registry { id name plainHttp } }
  }
`,
);
const DeleteRegistry = graphql(
  `mutation DeleteRegistry($input: DeleteRegistryInput!) { deleteRegistry(input: $input) { id } }`,
);
const ScanRegistry = graphql(`
  mutation ScanRegistry($input: ScanRegistryInput!) {
    scanRegistry(input: $input) { registry { id lastScannedAt } results { reference error } }
  }
`);

export interface Registry {
  id: string;
  name: string;
  host: string;
  plainHttp: boolean;
  lastScannedAt: string | null;
}

interface Props {
  registries: Registry[] | undefined;
  /** Whether the viewer can change the registries. */
  editable: boolean;
  onDone: () => void;
}

export function Registries({ registries, editable, onDone }: Props) {
  const scan = useAction(ScanRegistry, true);
  const remove = useAction(DeleteRegistry);
  const [scanning, setScanning] = useState<string | null>(null);
  const [edited, setEdited] = useState<Registry | "new" | null>(null);
  const [removed, setRemoved] = useState<Registry | null>(null);

  async function scanOne(id: string) {
    setScanning(id);
    const done = await scan.run({ input: { id } });
    setScanning(null);
    if (!done) return;
    const { results } = done.scanRegistry;
    for (const r of results.filter((x) => x.error).slice(0, 3))
      toast({ failure: { code: "UNAVAILABLE", message: `${r.reference}: ${r.error}` } });
    toast({ text: t("{{count}} tags were scanned.", { count: results.length }) });
    onDone();
  }
  return (
    <section className="panel" aria-labelledby="registries">
      <div className="panel-head">
        <h2 id="registries">{t("Registries")}</h2>
        <Button className="push" variant="default" disabled={!editable} onClick={() => setEdited("new")}>
          {t("Add a registry")}
        </Button>
      </div>
      {registries?.length === 0 ? (
        <Empty title={t("No registries yet")} cli="berth image registry create local 127.0.0.1:5000 --plain-http" />
      ) : null}
      <ul className="rows">
        {(registries ?? []).map((r) => (
          <li key={r.id}>
            <b>{r.name}</b> <code>{r.host}</code> {r.plainHttp ? <span className="dim">{t("plain HTTP")}</span> : null}
            <span className="push dim">
              {r.lastScannedAt ? t("scanned {{at}}", { at: when(r.lastScannedAt) }) : t("never scanned")}
            </span>
            <Button
              variant="light"
              size="compact-xs"
              loading={scanning === r.id}
              disabled={!editable}
              aria-label={t("Scan {{name}}", { name: r.name })}
              onClick={() => void scanOne(r.id)}
            >
              {t("Scan")}
            </Button>
            <Button
              variant="subtle"
              size="compact-xs"
              disabled={!editable}
              aria-label={t("Edit {{name}}", { name: r.name })}
              onClick={() => setEdited(r)}
            >
              {t("Edit")}
            </Button>
            <Button
              variant="subtle"
              color="red"
              size="compact-xs"
              disabled={!editable}
              aria-label={t("Remove {{name}}", { name: r.name })}
              onClick={() => {
                remove.clear();
                setRemoved(r);
              }}
            >
              {t("Remove")}
            </Button>
          </li>
        ))}
      </ul>
      {edited ? (
        <RegistryForm
          key={edited === "new" ? "new" : edited.id}
          registry={edited === "new" ? null : edited}
          onClose={() => setEdited(null)}
          onDone={onDone}
        />
      ) : null}
      <Confirm
        opened={removed !== null}
        title={t("Remove the registry {{name}}?", { name: removed?.name ?? "" })}
        action={t("Remove")}
        busy={remove.busy}
        failure={remove.failure}
        onClose={() => setRemoved(null)}
        onConfirm={async () => {
          if (removed && (await remove.run({ input: { id: removed.id } }))) {
            setRemoved(null);
            onDone();
          }
        }}
      >
        {t("Its images can no longer be launched. The registry itself keeps them.")}
      </Confirm>
    </section>
  );
}

/**
 * Adds or changes a registry. In a change, empty fields keep their value, and the host is fixed because image names
 * contain it.
 */
function RegistryForm({
  registry,
  onClose,
  onDone,
}: {
  registry: Registry | null;
  onClose: () => void;
  onDone: () => void;
}) {
  const [draft, setDraft] = useState({
    name: registry?.name ?? "",
    host: registry?.host ?? "",
    plainHttp: registry?.plainHttp ?? false,
    username: "",
    password: "",
  });
  const [anonymous, setAnonymous] = useState(false);
  const create = useAction(CreateRegistry);
  const update = useAction(UpdateRegistry);
  const { field, rest } = byField(create.failure ?? update.failure, ["name", "host", "username", "password"]);
  const set = (more: Partial<typeof draft>) => setDraft({ ...draft, ...more });
  async function submit(event: React.FormEvent) {
    event.preventDefault();
    const { username, password, name, host, plainHttp } = draft;
    const credentials = anonymous ? { username: "", password: "" } : username ? { username, password } : {};
    const done = registry
      ? await update.run({ input: { id: registry.id, name, plainHttp, ...credentials } })
      : await create.run({ input: { name, host, plainHttp, ...credentials } });
    if (!done) return;
    onDone();
    onClose();
  }
  return (
    <Modal
      opened
      onClose={onClose}
      title={<h2>{registry ? t("Edit {{name}}", { name: registry.name }) : t("Add a registry")}</h2>}
      closeButtonProps={{ "aria-label": t("Close") }}
    >
      <form className="stack" onSubmit={submit}>
        <TextInput
          label={t("Name")}
          required
          data-autofocus
          value={draft.name}
          error={field.name}
          onChange={(e) => set({ name: e.currentTarget.value })}
        />
        <TextInput
          label={t("Host and port")}
          required
          disabled={registry !== null}
          placeholder="registry.example:5000"
          value={draft.host}
          error={field.host}
          onChange={(e) => set({ host: e.currentTarget.value })}
        />
        <Checkbox
          label={t("Use plain HTTP")}
          checked={draft.plainHttp}
          onChange={(e) => set({ plainHttp: e.currentTarget.checked })}
        />
        {registry ? (
          <Checkbox
            label={t("From now on, log in without a password")}
            checked={anonymous}
            onChange={(e) => setAnonymous(e.currentTarget.checked)}
          />
        ) : null}
        <TextInput
          label={
            registry
              ? t("New user. Leave empty to keep the stored user and password.")
              : t("User, if the registry requires one")
          }
          disabled={anonymous}
          value={draft.username}
          error={field.username}
          onChange={(e) => set({ username: e.currentTarget.value })}
        />
        <PasswordInput
          label={t("Password")}
          autoComplete="off"
          disabled={anonymous}
          value={draft.password}
          error={field.password}
          onChange={(e) => set({ password: e.currentTarget.value })}
        />
        <FailureNote failure={rest} />
        <Button type="submit" loading={create.busy || update.busy} disabled={!draft.name || !draft.host}>
          {registry ? t("Save") : t("Add")}
        </Button>
      </form>
    </Modal>
  );
}
