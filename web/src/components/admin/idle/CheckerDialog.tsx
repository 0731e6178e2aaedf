import { Checkbox, Select, Switch, TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { t } from "../../../i18n";
import { FormDialog } from "../Form";
import { userTypes } from "../rules/group";
import {
  type Checker,
  CheckerFields,
  checkerKinds,
  type Draft,
  draftOf,
  kindOf,
  measures,
  readDraft,
  type Time,
} from "./checker";
import { Thresholds } from "./Thresholds";
import { Trial } from "./Trial";

const Create = graphql(
  `
  mutation CreateIdleChecker($input: CreateIdleCheckerInput!) {
    createIdleChecker(input: $input) { checker { ...CheckerFields } }
  }
`,
  [CheckerFields],
);
const Update = graphql(
  `
  mutation UpdateIdleChecker($input: UpdateIdleCheckerInput!) {
    updateIdleChecker(input: $input) { checker { ...CheckerFields } }
  }
`,
  [CheckerFields],
);

export function CheckerDialog({
  checker,
  onClose,
  onDone,
}: {
  checker: Checker | null;
  onClose: () => void;
  onDone: () => void;
}) {
  const [draft, setDraft] = useState(() => draftOf(checker));
  const create = useAction(Create);
  const update = useAction(Update);
  const { input, wrong } = readDraft(draft);
  const typed = Object.fromEntries(Object.entries(wrong).map(([field, why]) => [field, t(...why)]));
  const set = (more: Partial<Draft>) => setDraft({ ...draft, ...more });
  const ready = draft.name.trim() !== "" && Object.keys(wrong).length === 0;

  async function submit() {
    if (
      !(checker
        ? await update.run({ input: { ...input, id: checker.id } })
        : await create.run({ input: { ...input, kind: draft.kind } }))
    )
      return;
    onDone();
    onClose();
  }
  return (
    <FormDialog
      title={checker ? t("Edit {{name}}", { name: checker.name }) : t("New idle checker")}
      size="lg"
      onClose={onClose}
      onSubmit={() => void submit()}
      submit={checker ? t("Save") : t("Create")}
      busy={create.busy || update.busy}
      failure={create.failure ?? update.failure}
      disabled={!ready}
      fields={Object.keys(input)}
    >
      {(refused) => {
        const time = (key: Time, label: string, help?: string) => (
          <TextInput
            label={label}
            description={help}
            inputWrapperOrder={["label", "input", "description", "error"]}
            value={draft.times[key]}
            error={refused[key] ?? typed[key]}
            onChange={(e) => set({ times: { ...draft.times, [key]: e.currentTarget.value } })}
          />
        );
        return (
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
              label={t("Enabled")}
              description={t("It takes effect where it is bound.")}
              checked={draft.enabled}
              onChange={(e) => set({ enabled: e.currentTarget.checked })}
            />
            <Select
              label={t("Criterion")}
              allowDeselect={false}
              disabled={checker !== null}
              inputWrapperOrder={["label", "input", "description", "error"]}
              value={draft.kind}
              data={checkerKinds.map((k) => ({ value: k.value, label: t(k.label) }))}
              description={t(kindOf(draft.kind).help)}
              onChange={(kind) => kind && set({ kind: kind as Draft["kind"] })}
            />
            {measures(draft.kind) ? (
              <Thresholds draft={draft} error={refused.thresholds ?? typed.thresholds} onChange={set} />
            ) : null}
            <div className="pairs">
              {time("timeout", t(kindOf(draft.kind).timeout))}
              {time("warning", t("Warning time"), t("How long before the stop the owner is warned."))}
              {time("grace", t("Grace period for new sessions"))}
              {time("newUserGrace", t("Grace period for new users"))}
            </div>
            {draft.kind === "NETWORK" ? (
              <TextInput
                label={t("Ignored apps")}
                description={t("Names or ports of apps whose traffic does not count as use, such as tensorboard.")}
                value={draft.ignoredApps}
                error={Object.entries(refused).find(([field]) => field.startsWith("ignoredApps"))?.[1]}
                onChange={(e) => set({ ignoredApps: e.currentTarget.value })}
              />
            ) : null}
            <Checkbox.Group
              label={t("Session types")}
              value={draft.sessionTypes}
              error={refused.sessionTypes ?? typed.sessionTypes}
              onChange={(types) => set({ sessionTypes: types })}
            >
              <div className="row" style={{ marginTop: 4 }}>
                {userTypes.map((s) => (
                  <Checkbox key={s.value} value={s.value} label={t(s.label)} />
                ))}
              </div>
            </Checkbox.Group>
            {ready ? <Trial input={{ ...input, kind: draft.kind }} /> : null}
          </>
        );
      }}
    </FormDialog>
  );
}
