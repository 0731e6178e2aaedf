import { Button, FileButton, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { t } from "../../i18n";
import { FormDialog } from "../admin/Form";
import { isPrivate, nameOf } from "./sshkey";

const CreateSshKey = graphql(
  `mutation CreateSshKey($input: CreateSSHKeyInput!) { createSshKey(input: $input) { privateKey sshKey { id } } }`,
);

interface Props {
  /** Whether the user adds the public key of a key pair that they have. */
  own: boolean;
  onClose: () => void;
  /** Called with the private key if the server generated it. */
  onMade: (name: string, privateKey?: string) => void;
}

export function NewSshKey({ own, onClose, onMade }: Props) {
  const create = useAction(CreateSshKey);
  const [name, setName] = useState("");
  const [publicKey, setPublicKey] = useState("");
  const wrongHalf = isPrivate(publicKey);

  function read(text: string) {
    setPublicKey(text);
    if (!name.trim() && !isPrivate(text)) setName(nameOf(text));
  }
  async function submit() {
    if (own) {
      if (await create.run({ input: { name: name.trim(), publicKey: publicKey.trim() } })) onMade(name.trim());
      return;
    }
    const done = await create.run({ input: { name: name.trim() } });
    if (done?.createSshKey.privateKey) onMade(name.trim(), done.createSshKey.privateKey);
  }
  return (
    <FormDialog
      title={own ? t("Add your own SSH key") : t("Generate an SSH key")}
      failure={create.failure}
      fields={["name", "publicKey"]}
      submit={own ? t("Add") : t("Generate")}
      size={own ? 560 : undefined}
      busy={create.busy}
      disabled={!name.trim() || (own && (!publicKey.trim() || wrongHalf))}
      onClose={onClose}
      onSubmit={() => void submit()}
    >
      {(wrong) => (
        <>
          {own ? (
            <>
              <Textarea
                label={t("Public key")}
                description={t(
                  "One line from a file such as id_ed25519.pub. Allowed types: ed25519, ecdsa, and rsa with at least 2048 bits.",
                )}
                required
                data-autofocus
                autosize
                minRows={3}
                maxRows={8}
                spellCheck={false}
                value={publicKey}
                error={
                  wrongHalf
                    ? t(
                        "This is a private key. Keep it secret, and paste the public key from the file that ends in .pub.",
                      )
                    : wrong.publicKey
                }
                onChange={(e) => read(e.currentTarget.value)}
              />
              <div>
                <FileButton
                  accept=".pub,text/plain"
                  onChange={async (file) => file && read((await file.slice(0, 16_384).text()).trim())}
                >
                  {(props) => (
                    <Button variant="default" {...props}>
                      {t("Choose a file")}
                    </Button>
                  )}
                </FileButton>
              </div>
            </>
          ) : (
            <p>
              {t("Berth generates an ed25519 key, shows you the private key once, and stores only the public key.")}
            </p>
          )}
          <TextInput
            label={t("Name")}
            description={t("Where is it used?")}
            required
            {...(own ? {} : { "data-autofocus": true })}
            maxLength={64}
            value={name}
            error={wrong.name}
            onChange={(e) => setName(e.currentTarget.value)}
          />
        </>
      )}
    </FormDialog>
  );
}
