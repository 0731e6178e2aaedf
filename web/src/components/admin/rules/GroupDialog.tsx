import { Checkbox, Switch, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { t } from "../../../i18n";
import { FormDialog } from "../Form";
import { GroupScheduling } from "./GroupScheduling";
import { type Group, GroupFields, sessionTypes } from "./group";
import { draftOf, type GroupDraft, readDraft } from "./groupdraft";

const CreateGroup = graphql(
  `
  mutation CreateGroup($input: CreateResourceGroupInput!) {
    createResourceGroup(input: $input) { resourceGroup { ...GroupFields } }
  }
`,
  [GroupFields],
);
const UpdateGroup = graphql(
  `
  mutation UpdateGroup($input: UpdateResourceGroupInput!) {
    updateResourceGroup(input: $input) { resourceGroup { ...GroupFields } }
  }
`,
  [GroupFields],
);

export function GroupDialog({
  group,
  onClose,
  onDone,
}: {
  group: Group | null;
  onClose: () => void;
  onDone: () => void;
}) {
  const [draft, setDraft] = useState(() => draftOf(group));
  const create = useAction(CreateGroup);
  const update = useAction(UpdateGroup);
  const { input, wrong } = readDraft(draft);
  const typed = Object.fromEntries(Object.entries(wrong).map(([field, why]) => [field, t(...why)]));
  const set = (more: Partial<GroupDraft>) => setDraft({ ...draft, ...more });

  async function submit() {
    if (
      !(group
        ? await update.run({ input: { ...input, id: group.id, active: draft.active } })
        : await create.run({ input }))
    )
      return;
    onDone();
    onClose();
  }
  return (
    <FormDialog
      title={group ? t("Edit {{name}}", { name: group.name }) : t("New resource group")}
      size="lg"
      onClose={onClose}
      onSubmit={() => void submit()}
      submit={group ? t("Save") : t("Create")}
      busy={create.busy || update.busy}
      failure={create.failure ?? update.failure}
      disabled={!draft.name.trim() || Object.keys(wrong).length > 0}
      fields={["name", "description", ...Object.keys(input)]}
    >
      {(refused) => (
        <>
          <TextInput
            label={t("Name")}
            required
            data-autofocus
            value={draft.name}
            error={refused.name}
            onChange={(e) => set({ name: e.currentTarget.value })}
          />
          <TextInput
            label={t("Description")}
            value={draft.description}
            error={refused.description}
            onChange={(e) => set({ description: e.currentTarget.value })}
          />
          <Switch
            label={t("Open to everyone")}
            description={t("Otherwise, only with a grant.")}
            checked={draft.public}
            onChange={(e) => set({ public: e.currentTarget.checked })}
          />
          {group ? (
            <Switch
              label={t("Active")}
              description={t("An inactive group is hidden. Running sessions are not affected.")}
              checked={draft.active}
              onChange={(e) => set({ active: e.currentTarget.checked })}
            />
          ) : null}
          <Checkbox.Group
            label={t("Session types")}
            value={draft.sessionTypes}
            error={refused.sessionTypes ?? typed.sessionTypes}
            onChange={(types) => set({ sessionTypes: types })}
          >
            <div className="row" style={{ marginTop: 4 }}>
              {sessionTypes.map((s) => (
                <Checkbox key={s.value} value={s.value} label={t(s.label)} />
              ))}
            </div>
          </Checkbox.Group>
          <Textarea
            label={t("Reachable private networks")}
            description={t(
              "Such as 10.1.0.0/16 or 10.1.2.3:443, one per line. Applies to sessions that start from now on, in addition to what their agent allows.",
            )}
            autosize
            minRows={1}
            maxRows={8}
            value={draft.allowedNetworks}
            error={refused.allowedNetworks}
            onChange={(e) => set({ allowedNetworks: e.currentTarget.value })}
          />
          <GroupScheduling draft={draft} wrong={{ ...refused, ...typed }} onChange={set} />
        </>
      )}
    </FormDialog>
  );
}
