import { TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { t } from "../../../i18n";
import { enforcementWord } from "../../folder/folder";
import { bytes } from "../../format";
import { FormDialog } from "../Form";
import { type Holder, HolderPick } from "./HolderPick";
import { canEnforce, holderName, limitOf, limits, type Scope, ScopeFields, textOf } from "./scope";
import type { Volume } from "./volume";

const SetScope = graphql(
  `
  mutation SetQuotaScope($input: SetQuotaScopeInput!) { setQuotaScope(input: $input) { quotaScope { ...ScopeFields } } }
`,
  [ScopeFields],
);

interface Props {
  volume: Pick<Volume, "id" | "name" | "capabilities" | "enforcement">;
  /** Null lets the administrator select the user or project. */
  scope: Scope | null;
  onClose: () => void;
  onDone: () => void;
}

/** Sets how much the folders of one user or project can use on a volume. */
export function LimitDialog({ volume, scope, onClose, onDone }: Props) {
  const { run, busy, failure } = useAction(SetScope);
  const [holder, setHolder] = useState<Holder>({ kind: "user", id: null });
  const [texts, setTexts] = useState(() => Object.fromEntries(limits.map((l) => [l.field, textOf(l, scope)])));
  const wanted = limits.map((l) => ({ limit: l, value: limitOf(l, texts[l.field]!) }));
  const bad = wanted.some((w) => w.value === undefined);
  const most = wanted.find((w) => w.limit.field === "limitBytes")?.value;
  async function submit() {
    const whom = scope
      ? scope.holderUser
        ? { user: scope.holderUser.id }
        : { project: scope.holderProject?.id }
      : { [holder.kind]: holder.id };
    if (
      !(await run({
        input: { volume: volume.id, ...whom, ...Object.fromEntries(wanted.map((w) => [w.limit.field, w.value])) },
      }))
    )
      return;
    onDone();
    onClose();
  }
  return (
    <FormDialog
      title={
        scope
          ? t("Limit of {{holder}} on {{volume}}", { holder: holderName(scope), volume: volume.name })
          : t("Set a limit on {{volume}}", { volume: volume.name })
      }
      submit={t("Save")}
      busy={busy}
      failure={failure}
      fields={["limitBytes", "limitInodes", "user", "project", "volume"]}
      disabled={bad || (!scope && !holder.id) || !limits.some((l) => canEnforce(volume, l))}
      onClose={onClose}
      onSubmit={() => void submit()}
    >
      {(wrong) => (
        <>
          {scope ? null : (
            <HolderPick
              label={t("Owner of the folders")}
              kinds={["user", "project"]}
              value={holder}
              wrong={wrong}
              onChange={setHolder}
            />
          )}
          {wanted.map(({ limit: l, value }, i) => (
            <TextInput
              key={l.field}
              label={t(l.label)}
              placeholder={t(l.none)}
              disabled={!canEnforce(volume, l)}
              description={t(canEnforce(volume, l) ? l.hint : l.cannot)}
              value={texts[l.field]}
              data-autofocus={scope && i === 0 ? true : undefined}
              error={wrong[l.field] ?? (value === undefined ? t(l.wrong) : undefined)}
              onChange={(e) => setTexts({ ...texts, [l.field]: e.currentTarget.value })}
            />
          ))}
          {typeof most === "number" && scope?.usedBytes != null && most < scope.usedBytes ? (
            <p className="tone-wait" role="status">
              {t(
                "{{used}} are already in use. Nothing is deleted, but nothing more can be written until less is in use.",
                { used: bytes(scope.usedBytes) },
              )}
            </p>
          ) : null}
          <p className="dim">
            {t("On this volume, a limit is {{kept}}.", { kept: t(enforcementWord(volume.enforcement)) })}
          </p>
        </>
      )}
    </FormDialog>
  );
}
