import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { EditKeypair } from "../../components/account/EditKeypair";
import { KeypairRow } from "../../components/account/KeypairRow";
import { type Keypair, KeypairsQuery, type Made } from "../../components/account/keypair";
import { NewKeypair } from "../../components/account/NewKeypair";
import { Secret } from "../../components/account/Secret";
import { nodesOf } from "../../components/admin/usePages";
import { Confirm } from "../../components/Confirm";
import { Empty, FailureNote } from "../../components/Note";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";

const RotateKeypair = graphql(`
  mutation RotateKeypair($input: RotateKeypairInput!) {
    rotateKeypair(input: $input) { secret keypair { id accessKey name rotatedAt } }
  }
`);
const DeleteKeypair = graphql(
  `mutation DeleteKeypair($input: DeleteKeypairInput!) { deleteKeypair(input: $input) { id } }`,
);

export function Keypairs() {
  const { data, failure, refetch } = useLiveQuery({ query: KeypairsQuery });
  const [creating, { open, close }] = useDisclosure(false);
  const [made, setMade] = useState<Made | null>(null);
  const [editing, setEditing] = useState<Keypair | null>(null);
  const [asking, setAsking] = useState<{ what: "rotate" | "delete"; keypair: Keypair } | null>(null);
  const rotate = useAction(RotateKeypair);
  const remove = useAction(DeleteKeypair);
  const list = nodesOf(data?.keypairs);
  const name = asking?.keypair.name ?? "";

  function closeConfirmation() {
    rotate.clear();
    remove.clear();
    setAsking(null);
  }
  async function confirmed() {
    if (!asking) return;
    const input = { id: asking.keypair.id };
    if (asking.what === "rotate") {
      const done = await rotate.run({ input });
      if (!done) return;
      setMade({ ...done.rotateKeypair.keypair, secret: done.rotateKeypair.secret ?? "" });
    } else {
      if (!(await remove.run({ input }))) return;
      setMade((old) => (old?.id === input.id ? null : old));
      toast({ text: t("{{name}} was deleted.", { name }) });
    }
    refetch();
    closeConfirmation();
  }
  return (
    <>
      <div className="page-head">
        <h1>{t("Keypairs")}</h1>
        <span className="dim">{t("for programs that sign their requests")}</span>
        <Button className="push" variant="default" onClick={open}>
          {t("New keypair")}
        </Button>
      </div>
      <FailureNote failure={failure} />
      {made ? (
        <Secret
          key={made.secret}
          title={t("The secret of {{name}}", { name: made.name })}
          onClose={() => setMade(null)}
          values={[
            { label: t("Access key"), value: made.accessKey },
            { label: t("Secret"), value: made.secret },
          ]}
        />
      ) : null}
      <section className="panel" aria-label={t("Your keypairs")}>
        {data && list.length === 0 ? (
          <Empty title={t("No keypairs")}>
            {t("A keypair signs requests, so that its secret is never sent. It has all your permissions.")}
          </Empty>
        ) : null}
        <ul className="rows">
          {list.map((k) => (
            <KeypairRow
              key={k.id}
              keypair={k}
              onEdit={() => setEditing(k)}
              onAsk={(what) => setAsking({ what, keypair: k })}
              onChanged={refetch}
            />
          ))}
        </ul>
      </section>
      {creating ? (
        <NewKeypair
          onClose={close}
          onMade={(fresh) => {
            setMade(fresh);
            refetch();
            close();
          }}
        />
      ) : null}
      {editing ? <EditKeypair keypair={editing} onClose={() => setEditing(null)} /> : null}
      <Confirm
        opened={asking !== null}
        onConfirm={() => void confirmed()}
        onClose={closeConfirmation}
        busy={rotate.busy || remove.busy}
        failure={rotate.failure ?? remove.failure}
        title={asking?.what === "rotate" ? t("A new secret for {{name}}?", { name }) : t("Delete {{name}}?", { name })}
        action={asking?.what === "rotate" ? t("Create a new secret") : t("Delete")}
      >
        {asking?.what === "rotate"
          ? t("The old secret stops working at once. Update your programs with the new one.")
          : t("Programs that sign with it are refused at once. This cannot be undone.")}
      </Confirm>
    </>
  );
}
