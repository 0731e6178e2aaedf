import { Button, SegmentedControl } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { t } from "../../../i18n";
import { typeWords } from "../../../words";
import { Confirm } from "../../Confirm";
import { FormDialog } from "../Form";
import { Part, SidePanel } from "../Panel";
import { DomainPick, GroupPick, ProjectPick } from "../Pickers";
import { printTime } from "../rules/amounts";
import { type Binding, type Checker, CheckerFields, kindOf, rulePhrase } from "./checker";
import { Trial } from "./Trial";

const Delete = graphql(
  `mutation DeleteIdleChecker($input: DeleteIdleCheckerInput!) { deleteIdleChecker(input: $input) { id } }`,
);
const Bind = graphql(
  `
  mutation AttachIdleChecker($input: AttachIdleCheckerInput!) {
    attachIdleChecker(input: $input) { checker { ...CheckerFields } }
  }
`,
  [CheckerFields],
);
const Unbind = graphql(
  `
  mutation DetachIdleChecker($input: DetachIdleCheckerInput!) {
    detachIdleChecker(input: $input) { checker { ...CheckerFields } }
  }
`,
  [CheckerFields],
);

interface Props {
  checker: Checker;
  editable: boolean;
  onEdit: () => void;
  onClose: () => void;
  onDone: () => void;
}

/** Shows one idle checker: its rule, its bindings, and the sessions that it would end now. */
export function CheckerPanel({ checker, editable, onEdit, onClose, onDone }: Props) {
  const [deleting, setDeleting] = useState(false);
  const [binding, setBinding] = useState(false);
  const { run, busy, failure, clear } = useAction(Delete);
  const unbind = useAction(Unbind, true);
  async function remove() {
    if (!(await run({ input: { id: checker.id } }))) return;
    onDone();
    onClose();
  }
  return (
    <SidePanel title={checker.name} onClose={onClose}>
      <Part
        title={t("Settings")}
        aside={
          editable ? (
            <>
              <Button variant="default" onClick={onEdit}>
                {t("Edit")}
              </Button>
              <Button
                variant="subtle"
                color="red"
                onClick={() => {
                  clear();
                  setDeleting(true);
                }}
              >
                {t("Delete")}
              </Button>
            </>
          ) : null
        }
      >
        <dl className="facts">
          {checker.description ? (
            <>
              <dt>{t("Description")}</dt>
              <dd>{checker.description}</dd>
            </>
          ) : null}
          <dt>{t("Criterion")}</dt>
          <dd>
            {t(kindOf(checker.kind).label)}: {t(...rulePhrase(checker))}
          </dd>
          <dt>{t("Enabled")}</dt>
          <dd>{checker.enabled ? t("yes") : t("no")}</dd>
          <dt>{t("Warning time")}</dt>
          <dd>{printTime(checker.warning)}</dd>
          {checker.grace > 0 ? (
            <>
              <dt>{t("Grace period for new sessions")}</dt>
              <dd>{printTime(checker.grace)}</dd>
            </>
          ) : null}
          {checker.newUserGrace > 0 ? (
            <>
              <dt>{t("Grace period for new users")}</dt>
              <dd>{printTime(checker.newUserGrace)}</dd>
            </>
          ) : null}
          {checker.ignoredApps.length > 0 ? (
            <>
              <dt>{t("Ignored apps")}</dt>
              <dd>{checker.ignoredApps.join(", ")}</dd>
            </>
          ) : null}
          <dt>{t("Session types")}</dt>
          <dd>{typeWords(checker.sessionTypes).join(", ")}</dd>
        </dl>
      </Part>
      <Part
        title={t("Bound to")}
        aside={
          editable ? (
            <Button variant="light" onClick={() => setBinding(true)}>
              {t("Bind")}
            </Button>
          ) : null
        }
      >
        {checker.bindings.length === 0 ? (
          <p className="dim">{t("It is not bound yet, so it stops no sessions.")}</p>
        ) : (
          <ul className="rows" aria-label={t("Bound to")}>
            {checker.bindings.map((b) => (
              <li key={b.id}>
                <span>{bindingText(b)}</span>
                {editable ? (
                  <Button
                    className="push"
                    variant="subtle"
                    color="red"
                    size="compact-xs"
                    loading={unbind.busy}
                    aria-label={t("Unbind {{what}}", { what: bindingText(b) })}
                    onClick={async () => {
                      if (await unbind.run({ input: placeOf(checker.id, b) })) onDone();
                    }}
                  >
                    {t("Unbind")}
                  </Button>
                ) : null}
              </li>
            ))}
          </ul>
        )}
      </Part>
      <Part title={t("Dry run")}>
        {checker.bindings.length > 0 ? (
          <Trial key={JSON.stringify(checker)} checker={checker.id} />
        ) : (
          <p className="dim">{t("The sessions that it would stop now, in all places where it is bound.")}</p>
        )}
      </Part>
      {binding ? <BindDialog checker={checker} onClose={() => setBinding(false)} onDone={onDone} /> : null}
      <Confirm
        opened={deleting}
        title={t("Delete {{name}}?", { name: checker.name })}
        action={t("Delete")}
        busy={busy}
        failure={failure}
        onClose={() => setDeleting(false)}
        onConfirm={() => void remove()}
      >
        {t("It no longer stops sessions. Running sessions are not affected.")}
      </Confirm>
    </SidePanel>
  );
}

/** Returns the scope of a binding as text. */
export function bindingText(b: Binding): string {
  if (b.everywhere) return t("everywhere");
  if (b.domain) return t("domain {{name}}", { name: b.domain.name });
  if (b.project) return t("project {{name}}", { name: b.project.name });
  return b.resourceGroup ? t("resource group {{name}}", { name: b.resourceGroup.name }) : t("not visible to you");
}

const placeOf = (checker: string, b: Binding) => ({
  checker,
  ...(b.domain ? { domain: b.domain.id } : {}),
  ...(b.project ? { project: b.project.id } : {}),
  ...(b.resourceGroup ? { resourceGroup: b.resourceGroup.id } : {}),
});

const places = [
  { value: "everywhere", label: "Everywhere" },
  { value: "domain", label: "Domain" },
  { value: "project", label: "Project" },
  { value: "resourceGroup", label: "Resource group" },
] as const;

function BindDialog({ checker, onClose, onDone }: { checker: Checker; onClose: () => void; onDone: () => void }) {
  const { run, busy, failure } = useAction(Bind);
  const [kind, setKind] = useState<(typeof places)[number]["value"]>("resourceGroup");
  const [id, setId] = useState<string | null>(null);
  async function submit() {
    if (!(await run({ input: { checker: checker.id, ...(kind === "everywhere" ? {} : { [kind]: id }) } }))) return;
    onDone();
    onClose();
  }
  return (
    <FormDialog
      title={t("Bind {{name}}", { name: checker.name })}
      submit={t("Bind")}
      busy={busy}
      failure={failure}
      disabled={kind !== "everywhere" && !id}
      onClose={onClose}
      onSubmit={() => void submit()}
      fields={places.map((p) => p.value)}
    >
      {(wrong) => {
        const pick = { required: true, value: id, onChange: setId, error: wrong[kind] };
        return (
          <>
            <SegmentedControl
              aria-label={t("Bind to")}
              value={kind}
              data={places.map((p) => ({ value: p.value, label: t(p.label) }))}
              onChange={(k) => {
                setKind(k as typeof kind);
                setId(null);
              }}
            />
            {kind === "domain" ? <DomainPick label={t("Domain")} {...pick} /> : null}
            {kind === "project" ? <ProjectPick label={t("Project")} {...pick} /> : null}
            {kind === "resourceGroup" ? <GroupPick label={t("Resource group")} {...pick} /> : null}
            {kind === "everywhere" ? <p>{t("It then checks the sessions of all users.")}</p> : null}
          </>
        );
      }}
    </FormDialog>
  );
}
