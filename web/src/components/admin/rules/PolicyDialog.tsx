import { SegmentedControl, TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { t } from "../../../i18n";
import { word } from "../../../words";
import { FormDialog } from "../Form";
import { changeOf, draftOf, limits, type Policy, PolicyFields, readDraft } from "./policy";
import { SlotsInput, wrongSlots } from "./SlotsInput";

const CreatePolicy = graphql(
  `
  mutation CreatePolicy($input: CreateResourcePolicyInput!) {
    createResourcePolicy(input: $input) { policy { ...PolicyFields } }
  }
`,
  [PolicyFields],
);
const UpdatePolicy = graphql(
  `
  mutation UpdatePolicy($input: UpdateResourcePolicyInput!) {
    updateResourcePolicy(input: $input) { policy { ...PolicyFields } }
  }
`,
  [PolicyFields],
);

const units = { count: "", seconds: "", bytes: "GiB" } as const;
const examples = { count: "no limit", seconds: "no limit, or 12h, 2d", bytes: "no limit" } as const;

export function PolicyDialog({
  policy,
  onClose,
  onDone,
}: {
  policy: Policy | null;
  onClose: () => void;
  onDone: () => void;
}) {
  const [draft, setDraft] = useState(draftOf(policy));
  const create = useAction(CreatePolicy);
  const update = useAction(UpdatePolicy);
  const { limits: read, wrong } = readDraft(draft);
  const slots = (field: "totalSlots" | "maxPendingSlots") => [
    field,
    ...Object.keys(draft[field]).map((slot) => `${field}.${slot}`),
  ];
  const set = (more: Partial<typeof draft>) => {
    create.clear();
    update.clear();
    setDraft({ ...draft, ...more });
  };
  const typed = Object.fromEntries(Object.entries(wrong).map(([key, why]) => [key, t(why)]));

  async function submit() {
    const name = draft.name.trim();
    const done = policy
      ? await update.run({ input: { id: policy.id, name, ...changeOf(read) } })
      : await create.run({ input: { name, ...read } });
    if (!done) return;
    onDone();
    onClose();
  }
  return (
    <FormDialog
      title={policy ? t("Edit {{name}}", { name: policy.name }) : t("New policy")}
      size="lg"
      onClose={onClose}
      onSubmit={() => void submit()}
      submit={policy ? t("Save") : t("Create")}
      busy={create.busy || update.busy}
      failure={create.failure ?? update.failure}
      disabled={Object.keys(wrong).length > 0 || !draft.name.trim()}
      fields={[
        "name",
        ...slots("totalSlots"),
        "unlistedSlots",
        ...slots("maxPendingSlots"),
        ...limits.map((l) => l.key),
      ]}
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
          <p className="dim">{t("Leave a field empty for no limit.")}</p>
          <SlotsInput
            legend={t("Resources in use at once")}
            value={draft.totalSlots}
            wrong={wrongSlots("totalSlots", refused, typed)}
            free
            onChange={(totalSlots) => set({ totalSlots })}
          />
          <fieldset className="legendless">
            <legend>{t("All other resources")}</legend>
            <SegmentedControl
              aria-label={t("All other resources")}
              value={draft.unlistedSlots}
              onChange={(value) => set({ unlistedSlots: value as typeof draft.unlistedSlots })}
              data={[
                { value: "UNLIMITED", label: word("UnlistedSlots", "UNLIMITED") },
                { value: "ZERO", label: word("UnlistedSlots", "ZERO") },
              ]}
            />
          </fieldset>
          <SlotsInput
            legend={t("Resources requested by pending sessions")}
            value={draft.maxPendingSlots}
            wrong={wrongSlots("maxPendingSlots", refused, typed)}
            free
            onChange={(maxPendingSlots) => set({ maxPendingSlots })}
          />
          {(["sessions", "rest"] as const).map((part) => (
            <fieldset key={part} className="legendless">
              <legend>{part === "sessions" ? t("Sessions") : t("Other limits")}</legend>
              <div className="pairs">
                {limits
                  .filter((l) => l.part === part)
                  .map((l) => (
                    <TextInput
                      key={l.key}
                      label={t(l.label)}
                      placeholder={t(examples[l.kind])}
                      value={draft.plain[l.key]}
                      error={typed[l.key] ?? refused[l.key]}
                      rightSection={
                        units[l.kind] && !/[a-z]/i.test(draft.plain[l.key]) ? (
                          <span className="dim">{units[l.kind]}</span>
                        ) : null
                      }
                      rightSectionWidth={units[l.kind] ? 40 : 0}
                      rightSectionPointerEvents="none"
                      onChange={(e) => set({ plain: { ...draft.plain, [l.key]: e.currentTarget.value } })}
                    />
                  ))}
              </div>
            </fieldset>
          ))}
        </>
      )}
    </FormDialog>
  );
}
