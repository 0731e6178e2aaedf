import { Button, Checkbox, Modal, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { byField } from "../../api/errors";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { FailureNote } from "../Note";

const CreateToken = graphql(`
  mutation CreateToken($input: CreateAccessTokenInput!) { createAccessToken(input: $input) { secret accessToken { id name } } }
`);

const scopes = [
  { value: "read", text: "See what you see." },
  { value: "sessions", text: "Start, change, enter and end sessions." },
  { value: "folders", text: "Change folders and their files." },
  { value: "account", text: "Change your profile and your credentials." },
  { value: "admin", text: "Everything else that you may do. Without it, a token has the rights of a plain user." },
] as const;

const lifetimes = [
  { value: "7", label: "7 days" },
  { value: "30", label: "30 days" },
  { value: "90", label: "90 days" },
  { value: "365", label: "1 year" },
  { value: "0", label: "No end" },
];

const endsAt = (days: number) => (days > 0 ? new Date(Date.now() + days * 86_400_000).toISOString() : null);

export function NewToken({ onClose, onMade }: { onClose: () => void; onMade: (secret: string) => void }) {
  const { projects } = useViewer();
  const { run, busy, failure } = useAction(CreateToken);
  const { field, rest } = byField(failure, ["name", "scopes", "project", "expiresAt"]);
  const [name, setName] = useState("");
  const [picked, setPicked] = useState<string[]>(["read", "sessions", "folders"]);
  const [project, setProject] = useState("");
  const [days, setDays] = useState("90");

  async function submit(event: React.FormEvent) {
    event.preventDefault();
    const chosen = scopes.map((s) => s.value).filter((s) => picked.includes(s));
    const done = await run({ input: { name: name.trim(), scopes: chosen, project: project || null, expiresAt: endsAt(Number(days)) } });
    if (done?.createAccessToken.secret) onMade(done.createAccessToken.secret);
  }
  return (
    <Modal opened onClose={onClose} title={<h2>{t("New token")}</h2>} closeButtonProps={{ "aria-label": t("Close") }}>
      <form className="stack" onSubmit={submit}>
        <TextInput label={t("Name")} description={t("What will use it?")} required data-autofocus value={name} error={field.name} onChange={(e) => setName(e.currentTarget.value)} />
        <Checkbox.Group label={t("What it may do")} value={picked} onChange={setPicked} error={field.scopes ?? (picked.length === 0 ? t("Choose at least one.") : undefined)}>
          <div className="stack small" style={{ margin: "6px 0" }}>
            {scopes.map((s) => <Checkbox key={s.value} value={s.value} label={t(s.value)} description={t(s.text)} />)}
          </div>
        </Checkbox.Group>
        <Select label={t("Reaches")} value={project} error={field.project} onChange={(p) => setProject(p ?? "")}
          data={[{ value: "", label: t("all your projects") }, ...projects.map((p) => ({ value: p.id, label: t("only {{project}}", { project: p.name }) }))]} />
        <Select label={t("Ends after")} value={days} error={field.expiresAt} data={lifetimes.map((l) => ({ ...l, label: t(l.label) }))} onChange={(d) => d && setDays(d)} />
        <FailureNote failure={rest} />
        <Button type="submit" loading={busy} disabled={!name.trim() || picked.length === 0}>
          {t("Create")}
        </Button>
      </form>
    </Modal>
  );
}
