import { Button, Checkbox, Modal, PasswordInput, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useState } from "react";
import { byField } from "../../api/errors";
import { graphql } from "../../api/graphql";
import { Confirm } from "../../components/Confirm";
import { Empty, FailureNote } from "../../components/Note";
import { bytes, when } from "../../components/format";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { toast } from "../../hooks/useToasts";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";

const ImagesQuery = graphql(`
  query Images {
    registries { id name host plainHttp lastScannedAt }
    images(first: 100, orderBy: [{ field: NAME, direction: ASC }]) {
      totalCount edges { node { id name reference architecture sizeBytes status registry { id name } } }
    }
  }
`);
const CreateRegistry = graphql(`mutation CreateRegistry($input: CreateRegistryInput!) { createRegistry(input: $input) { registry { id name } } }`);
const ScanRegistry = graphql(`
  mutation ScanRegistry($input: ScanRegistryInput!) {
    scanRegistry(input: $input) { registry { id lastScannedAt } results { reference error } }
  }
`);
const RegisterImage = graphql(`mutation RegisterImage($input: RegisterImageInput!) { registerImage(input: $input) { image { id name } } }`);
const ForgetImage = graphql(`mutation ForgetImage($input: ForgetImageInput!) { forgetImage(input: $input) { id } }`);

export function Images() {
  const superadmin = useViewer().user.role === "superadmin";
  const { data, failure, refetch } = useLiveQuery({ query: ImagesQuery });
  const scan = useAction(ScanRegistry, true);
  const register = useAction(RegisterImage);
  const forget = useAction(ForgetImage);
  const [reference, setReference] = useState("");
  const [scanning, setScanning] = useState<string | null>(null);
  const [gone, setGone] = useState<{ id: string; name: string } | null>(null);
  const [adding, add] = useDisclosure(false);
  const images = (data?.images.edges ?? []).flatMap((e) => (e?.node ? [e.node] : []));

  async function scanOne(id: string) {
    setScanning(id);
    const done = await scan.run({ input: { id } });
    setScanning(null);
    if (!done) return;
    const { results } = done.scanRegistry;
    for (const r of results.filter((x) => x.error).slice(0, 3)) toast({ failure: { code: "UNAVAILABLE", message: `${r.reference}: ${r.error}` } });
    toast({ text: t("{{count}} tags read.", { count: results.length }) });
    refetch();
  }
  return (
    <>
      <div className="page-head">
        <h1>{t("Images")}</h1>
        <span className="dim">{data?.images.totalCount}</span>
        <form className="push row" onSubmit={async (event) => {
          event.preventDefault();
          if (!(await register.run({ input: { reference: reference.trim() } }))) return;
          setReference("");
          refetch();
        }}>
          <TextInput aria-label={t("Reference of an image")} placeholder="registry.example:5000/name:tag" w={260} value={reference} disabled={!superadmin} onChange={(e) => setReference(e.currentTarget.value)} />
          <Button type="submit" variant="default" loading={register.busy} disabled={!superadmin || !reference.trim()}>
            {t("Register")}
          </Button>
        </form>
      </div>
      <FailureNote failure={failure ?? register.failure} />
      <section className="panel" aria-labelledby="registries">
        <div className="panel-head">
          <h2 id="registries">{t("Registries")}</h2>
          <Button className="push" variant="default" disabled={!superadmin} onClick={add.open}>
            {t("Add a registry")}
          </Button>
        </div>
        {data?.registries.length === 0 ? <Empty title={t("No registry yet")} cli="berth image registry create local 127.0.0.1:5000 --plain-http" /> : null}
        <ul className="rows">
          {(data?.registries ?? []).map((r) => (
            <li key={r.id}>
              <b>{r.name}</b> <code>{r.host}</code> {r.plainHttp ? <span className="dim">{t("plain http")}</span> : null}
              <span className="push dim">{r.lastScannedAt ? t("scanned {{at}}", { at: when(r.lastScannedAt) }) : t("never scanned")}</span>
              <Button variant="light" size="compact-xs" loading={scanning === r.id} disabled={!superadmin} aria-label={t("Scan {{name}}", { name: r.name })} onClick={() => void scanOne(r.id)}>
                {t("Scan")}
              </Button>
            </li>
          ))}
        </ul>
      </section>
      {images.length > 0 ? (
        <div className="panel scroll-x">
          <table className="grid">
            <thead>
              <tr>
                <th>{t("Image")}</th>
                <th>{t("Reference")}</th>
                <th>{t("Architecture")}</th>
                <th className="num">{t("Size")}</th>
                <th>{t("State")}</th>
                <th><span className="dim">{t("Actions")}</span></th>
              </tr>
            </thead>
            <tbody>
              {images.map((i) => (
                <tr key={i.id}>
                  <td className="clip"><b>{i.name}</b></td>
                  <td className="clip"><code>{i.reference}</code></td>
                  <td>{i.architecture}</td>
                  <td className="num nowrap">{bytes(i.sizeBytes)}</td>
                  <td>{i.status === "alive" ? t("there") : <span className="tone-bad">{t("gone")}</span>}</td>
                  <td style={{ width: 1 }}>
                    <Button variant="subtle" color="red" size="compact-xs" disabled={!superadmin} aria-label={t("Forget {{name}}", { name: i.name })} onClick={() => setGone(i)}>
                      {t("Forget")}
                    </Button>
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      ) : null}
      <Confirm opened={gone !== null} title={t("Forget this image?")} action={t("Forget")} busy={forget.busy} failure={forget.failure}
        onClose={() => { forget.clear(); setGone(null); }}
        onConfirm={async () => { if (await forget.run({ input: { id: gone!.id } })) { setGone(null); refetch(); } }}>
        {t("{{name}} can no longer be launched. It stays in its registry; a scan brings it back.", { name: gone?.name ?? "" })}
      </Confirm>
      {adding ? <AddRegistry onClose={add.close} onDone={refetch} /> : null}
    </>
  );
}

function AddRegistry({ onClose, onDone }: { onClose: () => void; onDone: () => void }) {
  const [draft, setDraft] = useState({ name: "", host: "", plainHttp: false, username: "", password: "" });
  const { run, busy, failure } = useAction(CreateRegistry);
  const { field, rest } = byField(failure, ["name", "host", "username", "password"]);
  const set = (more: Partial<typeof draft>) => setDraft({ ...draft, ...more });
  return (
    <Modal opened onClose={onClose} title={<h2>{t("Add a registry")}</h2>} closeButtonProps={{ "aria-label": t("Close") }}>
      <form className="stack" onSubmit={async (event) => {
        event.preventDefault();
        const { username, password, ...plain } = draft;
        if (!(await run({ input: { ...plain, ...(username ? { username, password } : {}) } }))) return;
        onDone();
        onClose();
      }}>
        <TextInput label={t("Name")} required data-autofocus value={draft.name} error={field.name} onChange={(e) => set({ name: e.currentTarget.value })} />
        <TextInput label={t("Host and port")} required placeholder="registry.example:5000" value={draft.host} error={field.host} onChange={(e) => set({ host: e.currentTarget.value })} />
        <Checkbox label={t("Speaks plain http")} checked={draft.plainHttp} onChange={(e) => set({ plainHttp: e.currentTarget.checked })} />
        <TextInput label={t("User, if it asks for one")} value={draft.username} error={field.username} onChange={(e) => set({ username: e.currentTarget.value })} />
        <PasswordInput label={t("Password")} autoComplete="off" value={draft.password} error={field.password} onChange={(e) => set({ password: e.currentTarget.value })} />
        <FailureNote failure={rest} />
        <Button type="submit" loading={busy} disabled={!draft.name || !draft.host}>
          {t("Add")}
        </Button>
      </form>
    </Modal>
  );
}
