import { TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { t } from "../../../i18n";
import { FormDialog } from "../Form";
import { GroupPick } from "../Pickers";
import { hints, parseSize, printSize, readSlots, textsOf } from "./amounts";
import { type Preset, PresetFields } from "./preset";
import { SlotsInput, wrongSlots } from "./SlotsInput";

const CreatePreset = graphql(
  `
  mutation CreatePreset($input: CreateResourcePresetInput!) {
    createResourcePreset(input: $input) { preset { ...PresetFields } }
  }
`,
  [PresetFields],
);
const UpdatePreset = graphql(
  `
  mutation UpdatePreset($input: UpdateResourcePresetInput!) {
    updateResourcePreset(input: $input) { preset { ...PresetFields } }
  }
`,
  [PresetFields],
);

export function PresetDialog({
  preset,
  onClose,
  onDone,
}: {
  preset: Preset | null;
  onClose: () => void;
  onDone: (group: string | null) => void;
}) {
  const [name, setName] = useState(preset?.name ?? "");
  const [description, setDescription] = useState(preset?.description ?? "");
  const [texts, setTexts] = useState(textsOf(preset?.slots ?? {}));
  const [shm, setShm] = useState(preset && preset.shmBytes > 0 ? printSize(preset.shmBytes) : "");
  const [group, setGroup] = useState<string | null>(preset?.resourceGroup?.id ?? null);
  const create = useAction(CreatePreset);
  const update = useAction(UpdatePreset);
  const { slots, wrong } = readSlots(texts);
  const shmBytes = shm.trim() ? parseSize(shm) : 0;
  const typed = Object.fromEntries(Object.entries(wrong).map(([slot, why]) => [`slots.${slot}`, t(why)]));

  async function submit() {
    const input = { name: name.trim(), description: description.trim(), slots, shmBytes };
    if (
      !(preset
        ? await update.run({ input: { ...input, id: preset.id } })
        : await create.run({ input: { ...input, resourceGroup: group } }))
    )
      return;
    onDone(preset ? (preset.resourceGroup?.id ?? null) : group);
    onClose();
  }
  return (
    <FormDialog
      title={preset ? t("Edit {{name}}", { name: preset.name }) : t("New preset")}
      size="lg"
      onClose={onClose}
      onSubmit={() => void submit()}
      submit={preset ? t("Save") : t("Create")}
      busy={create.busy || update.busy}
      failure={create.failure ?? update.failure}
      disabled={!name.trim() || Object.keys(wrong).length > 0 || shmBytes === null || Object.keys(slots).length === 0}
      fields={[
        "name",
        "description",
        ...Object.keys(texts).map((slot) => `slots.${slot}`),
        "slots",
        "shmBytes",
        "resourceGroup",
      ]}
    >
      {(refused) => (
        <>
          <TextInput
            label={t("Name")}
            required
            data-autofocus
            value={name}
            error={refused.name}
            onChange={(e) => setName(e.currentTarget.value)}
          />
          <TextInput
            label={t("Description")}
            value={description}
            error={refused.description}
            onChange={(e) => setDescription(e.currentTarget.value)}
          />
          <SlotsInput
            legend={t("Requested resources")}
            value={texts}
            wrong={wrongSlots("slots", refused, typed)}
            onChange={setTexts}
          />
          <div className="pair">
            <TextInput
              label={t("Shared memory")}
              placeholder={t("default: 64 MiB")}
              value={shm}
              error={shmBytes === null ? t(hints.bytes) : refused.shmBytes}
              onChange={(e) => setShm(e.currentTarget.value)}
              rightSection={/[a-z]/i.test(shm) ? null : <span className="dim">GiB</span>}
              rightSectionPointerEvents="none"
              rightSectionWidth={40}
            />
            {preset ? (
              <TextInput label={t("Resource group")} value={preset.resourceGroup?.name ?? t("all")} disabled />
            ) : (
              <GroupPick
                label={t("Resource group")}
                placeholder={t("All")}
                value={group}
                error={refused.resourceGroup}
                onChange={setGroup}
              />
            )}
          </div>
        </>
      )}
    </FormDialog>
  );
}
