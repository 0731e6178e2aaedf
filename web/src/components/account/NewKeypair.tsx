import { useState } from "react";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { t } from "../../i18n";
import { FormDialog } from "../admin/Form";
import { NameField } from "./credentialFields";
import type { Made } from "./keypair";

const CreateKeypair = graphql(`
  mutation CreateKeypair($input: CreateKeypairInput!) {
    createKeypair(input: $input) { secret keypair { id accessKey name } }
  }
`);

export function NewKeypair({ onClose, onMade }: { onClose: () => void; onMade: (made: Made) => void }) {
  const { run, busy, failure } = useAction(CreateKeypair);
  const [name, setName] = useState("");
  return (
    <FormDialog
      title={t("New keypair")}
      failure={failure}
      fields={["name"]}
      submit={t("Create")}
      busy={busy}
      disabled={!name.trim()}
      onClose={onClose}
      onSubmit={async () => {
        const done = await run({ input: { name: name.trim() } });
        if (done) onMade({ ...done.createKeypair.keypair, secret: done.createKeypair.secret ?? "" });
      }}
    >
      {(wrong) => <NameField value={name} error={wrong.name} onChange={setName} />}
    </FormDialog>
  );
}
