import { TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { t } from "../../i18n";
import { FormDialog } from "../admin/Form";
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
      {(wrong) => (
        <TextInput
          label={t("Name")}
          description={t("What will use it?")}
          required
          data-autofocus
          maxLength={64}
          value={name}
          error={wrong.name}
          onChange={(e) => setName(e.currentTarget.value)}
        />
      )}
    </FormDialog>
  );
}
