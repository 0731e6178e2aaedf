import { Button } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { NewSshKey } from "../../components/account/NewSshKey";
import { Secret } from "../../components/account/Secret";
import { fileOf, keyKind } from "../../components/account/sshkey";
import { nodesOf } from "../../components/admin/usePages";
import { Confirm } from "../../components/Confirm";
import { when } from "../../components/format";
import { Copy, Empty, FailureNote } from "../../components/Note";
import { save } from "../../components/save";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";

const SshKeysQuery = graphql(
  `query SshKeys { sshKeys(first: 100, orderBy: [{ field: CREATED_AT }]) { edges { node { id name publicKey fingerprint createdAt } } } }`,
);
const DeleteSshKey = graphql(
  `mutation DeleteSshKey($input: DeleteSSHKeyInput!) { deleteSshKey(input: $input) { id } }`,
);

export function SshKeys() {
  const { data, failure, refetch } = useLiveQuery({ query: SshKeysQuery });
  const [adding, setAdding] = useState<"make" | "own" | null>(null);
  const [made, setMade] = useState<{ name: string; secret: string } | null>(null);
  const [deleting, setDeleting] = useState<{ id: string; name: string } | null>(null);
  const remove = useAction(DeleteSshKey);
  const keys = nodesOf(data?.sshKeys);
  return (
    <>
      <div className="page-head">
        <h1>{t("SSH keys")}</h1>
        <span className="dim">{t("only the public keys are stored")}</span>
        <Button className="push" variant="default" onClick={() => setAdding("own")}>
          {t("Add your own")}
        </Button>
        <Button variant="default" onClick={() => setAdding("make")}>
          {t("Generate a key")}
        </Button>
      </div>
      <FailureNote failure={failure} />
      {made ? (
        <Secret
          title={t("The private key of {{name}}", { name: made.name })}
          values={[{ label: t("Private key"), value: made.secret }]}
          file={fileOf(made.name)}
          onClose={() => setMade(null)}
        >
          <p className="dim">{t("Do not share the file, and make it readable only for you: chmod 600.")}</p>
        </Secret>
      ) : null}
      <section className="panel" aria-label={t("Your SSH keys")}>
        {data && keys.length === 0 ? (
          <Empty title={t("No SSH keys")}>{t("Generate a key here, or add the public key of your own.")}</Empty>
        ) : null}
        <ul className="rows">
          {keys.map((k) => (
            <li key={k.id}>
              <div className="entry">
                <div className="row tight">
                  <b>{k.name}</b> <span className="tag">{keyKind(k.publicKey)}</span>{" "}
                  <span className="dim">{t("created {{at}}", { at: when(k.createdAt) })}</span>
                </div>
                <div className="row tight">
                  <code className="dim">{k.fingerprint}</code>{" "}
                  <Copy value={k.fingerprint} label={t("Copy the fingerprint of {{name}}", { name: k.name })} />
                </div>
              </div>
              <Button
                variant="subtle"
                size="compact-xs"
                aria-label={t("Download the public key of {{name}}", { name: k.name })}
                onClick={() => save(`${fileOf(k.name)}.pub`, `${k.publicKey.trim()} ${k.name}\n`)}
              >
                {t("Public key")}
              </Button>
              <Button
                variant="subtle"
                color="red"
                size="compact-xs"
                aria-label={t("Delete {{name}}", { name: k.name })}
                onClick={() => setDeleting(k)}
              >
                {t("Delete")}
              </Button>
            </li>
          ))}
        </ul>
      </section>
      {adding ? (
        <NewSshKey
          own={adding === "own"}
          onClose={() => setAdding(null)}
          onMade={(name, secret) => {
            if (secret) setMade({ name, secret });
            else toast({ text: t("{{name}} was added.", { name }) });
            setAdding(null);
            refetch();
          }}
        />
      ) : null}
      <Confirm
        opened={deleting !== null}
        title={t("Delete {{name}}?", { name: deleting?.name ?? "" })}
        action={t("Delete")}
        busy={remove.busy}
        failure={remove.failure}
        onClose={() => {
          remove.clear();
          setDeleting(null);
        }}
        onConfirm={async () => {
          if (!deleting || !(await remove.run({ input: { id: deleting.id } }))) return;
          toast({ text: t("{{name}} was deleted.", { name: deleting.name }) });
          setDeleting(null);
          refetch();
        }}
      >
        {t("Its private key no longer works here.")}
      </Confirm>
    </>
  );
}
