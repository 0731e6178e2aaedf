import { Button, Modal, TextInput } from "@mantine/core";
import { useState } from "react";
import { byField } from "../../api/errors";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { t } from "../../i18n";
import { FailureNote } from "../Note";
import { shortName } from "./name";

const Rename = graphql(
  `mutation RenameImage($input: RenameImageInput!) { renameImage(input: $input) { image { id name reference } } }`,
);

interface Props {
  image: { id: string; name: string };
  onClose: () => void;
  onDone: (name: string) => void;
}

/** Gives an own image of the user another name or tag. */
export function RenameImage({ image, onClose, onDone }: Props) {
  const [name = "", tag = ""] = shortName(image.name).split(":");
  const [draft, setDraft] = useState({ name, tag });
  const rename = useAction(Rename);
  const { field, rest } = byField(rename.failure, ["name", "tag"]);
  async function submit(event: React.FormEvent) {
    event.preventDefault();
    const done = await rename.run({ input: { id: image.id, ...draft } });
    if (!done) return;
    onDone(shortName(done.renameImage.image.name));
    onClose();
  }
  return (
    <Modal
      opened
      onClose={onClose}
      title={<h2>{t("Rename {{name}}", { name: shortName(image.name) })}</h2>}
      closeButtonProps={{ "aria-label": t("Close") }}
    >
      <form className="stack" onSubmit={submit}>
        <TextInput
          label={t("Name")}
          required
          data-autofocus
          value={draft.name}
          error={field.name}
          onChange={(e) => setDraft({ ...draft, name: e.currentTarget.value })}
        />
        <TextInput
          label={t("Tag")}
          required
          value={draft.tag}
          error={field.tag}
          onChange={(e) => setDraft({ ...draft, tag: e.currentTarget.value })}
        />
        <p className="dim">
          {t("Sessions that run keep the image. Templates and scripts that use the old name no longer find it.")}
        </p>
        <FailureNote failure={rest} />
        <Button type="submit" loading={rename.busy} disabled={draft.name === name && draft.tag === tag}>
          {t("Rename")}
        </Button>
      </form>
    </Modal>
  );
}
