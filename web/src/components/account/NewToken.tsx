import { Checkbox, Select } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { word } from "../../words";
import { FormDialog } from "../admin/Form";
import { LifetimeFields, NameField, useLifetime } from "./credentialFields";
import { scopes } from "./token";

const CreateToken = graphql(`
  mutation CreateToken($input: CreateAccessTokenInput!) {
    createAccessToken(input: $input) { secret accessToken { id name } }
  }
`);

export function NewToken({ onClose, onMade }: { onClose: () => void; onMade: (secret: string) => void }) {
  const { projects } = useViewer();
  const { run, busy, failure } = useAction(CreateToken);
  const [name, setName] = useState("");
  const [picked, setPicked] = useState<string[]>(["READ", "SESSIONS", "FOLDERS"]);
  const [project, setProject] = useState("");
  const valid = useLifetime();

  async function submit() {
    const chosen = scopes.map((s) => s.value).filter((s) => picked.includes(s));
    const done = await run({
      input: { name: name.trim(), scopes: chosen, project: project || null, expiresAt: valid.ends ?? null },
    });
    if (done?.createAccessToken.secret) onMade(done.createAccessToken.secret);
  }
  return (
    <FormDialog
      title={t("New token")}
      failure={failure}
      fields={["name", "scopes", "project", "expiresAt"]}
      submit={t("Create")}
      busy={busy}
      onClose={onClose}
      disabled={!name.trim() || picked.length === 0 || valid.ends === undefined}
      onSubmit={() => void submit()}
    >
      {(wrong) => (
        <>
          <NameField value={name} error={wrong.name} onChange={setName} />
          <Checkbox.Group
            label={t("Scopes")}
            value={picked}
            onChange={setPicked}
            error={wrong.scopes ?? (picked.length === 0 ? t("Choose at least one scope.") : undefined)}
          >
            <div className="stack small" style={{ margin: "6px 0" }}>
              {scopes.map((s) => (
                <Checkbox key={s.value} value={s.value} label={word("TokenScope", s.value)} description={t(s.text)} />
              ))}
            </div>
          </Checkbox.Group>
          <Select
            label={t("Project access")}
            value={project}
            error={wrong.project}
            onChange={(p) => setProject(p ?? "")}
            data={[
              { value: "", label: t("all your projects") },
              ...projects.map((p) => ({ value: p.id, label: t("only {{project}}", { project: p.name }) })),
            ]}
          />
          <LifetimeFields of={valid} error={wrong.expiresAt} />
        </>
      )}
    </FormDialog>
  );
}
