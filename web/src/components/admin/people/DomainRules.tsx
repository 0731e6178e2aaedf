import { Checkbox, Select, Switch, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { useAction } from "../../../hooks/useAction";
import { toast } from "../../../hooks/useToasts";
import { t } from "../../../i18n";
import { words } from "../../../words";
import { Form } from "../Form";
import type { OneDomain, Registries } from "./domain";
import { type DomainDraft, domainChanges, domainDraftOf, type SignUp, UpdateDomain } from "./domaindraft";

const fields = [
  "name",
  "description",
  "totpRequired",
  "passwordMinLength",
  "passwordMaxAgeDays",
  "signUp",
  "registriesRestricted",
  "registries",
];

export const signUps = words.DomainSignUp;

interface Props {
  domain: OneDomain;
  registries: Registries;
  editable: boolean;
}

/** Shows the rules of a domain: the requirements for its users, and the allowed registries. */
export function DomainRules({ domain, registries, editable }: Props) {
  return editable ? (
    <Edit domain={domain} registries={registries} />
  ) : (
    <Facts domain={domain} registries={registries} />
  );
}

function Edit({ domain, registries }: Omit<Props, "editable">) {
  const { run, busy, failure } = useAction(UpdateDomain);
  const [draft, setDraft] = useState(() => domainDraftOf(domain));
  const { input, changed, wrong: unread } = domainChanges(domain, draft);
  const set = (more: Partial<DomainDraft>) => setDraft({ ...draft, ...more });
  const flip = (id: string) =>
    set({
      registries: draft.registries.includes(id) ? draft.registries.filter((r) => r !== id) : [...draft.registries, id],
    });
  async function save() {
    const done = await run({ input });
    if (!done) return;
    setDraft(domainDraftOf(done.updateDomain.domain));
    toast({ text: t("Saved.") });
  }
  return (
    <Form
      failure={failure}
      fields={fields}
      submit={t("Save")}
      busy={busy}
      disabled={!changed || Object.keys(unread).length > 0}
      onSubmit={() => void save()}
    >
      {(refused) => {
        const wrong = { ...refused, ...Object.fromEntries(Object.entries(unread).map(([k, v]) => [k, t(v)])) };
        return (
          <>
            <TextInput
              label={t("Name")}
              required
              value={draft.name}
              error={wrong.name}
              onChange={(e) => set({ name: e.currentTarget.value })}
            />
            <Textarea
              label={t("Description")}
              autosize
              minRows={1}
              maxRows={5}
              value={draft.description}
              error={wrong.description}
              onChange={(e) => set({ description: e.currentTarget.value })}
            />
            <div className="pair">
              <TextInput
                label={t("Minimum password length")}
                inputMode="numeric"
                rightSection={<span className="dim">{t("characters")}</span>}
                rightSectionWidth={86}
                rightSectionPointerEvents="none"
                value={draft.passwordMinLength}
                error={wrong.passwordMinLength}
                onChange={(e) => set({ passwordMinLength: e.currentTarget.value })}
              />
              <TextInput
                label={t("Passwords expire after")}
                inputMode="numeric"
                rightSection={<span className="dim">{t("days")}</span>}
                rightSectionWidth={50}
                rightSectionPointerEvents="none"
                description={
                  draft.passwordMaxAgeDays.trim() === "0" ? t("Enter 0 for passwords that never expire.") : undefined
                }
                inputWrapperOrder={["label", "input", "description", "error"]}
                value={draft.passwordMaxAgeDays}
                error={wrong.passwordMaxAgeDays}
                onChange={(e) => set({ passwordMaxAgeDays: e.currentTarget.value })}
              />
            </div>
            <Switch
              label={t("Require two-step login")}
              description={t("Users without two-step login must set it up at their next request.")}
              checked={draft.totpRequired}
              onChange={(e) => set({ totpRequired: e.currentTarget.checked })}
            />
            <Select
              label={t("Who can sign up")}
              value={draft.signUp}
              error={wrong.signUp}
              allowDeselect={false}
              data={Object.entries(signUps).map(([value, label]) => ({ value, label: t(label) }))}
              onChange={(signUp) => signUp && set({ signUp: signUp as SignUp })}
            />
            <fieldset className="legendless stack small">
              <legend>{t("Registries")}</legend>
              <Switch
                label={t("Allow only images from selected registries")}
                checked={draft.registriesRestricted}
                onChange={(e) => set({ registriesRestricted: e.currentTarget.checked })}
              />
              {draft.registriesRestricted
                ? registries.map((r) => (
                    <Checkbox
                      key={r.id}
                      label={r.name === r.host ? r.name : `${r.name} (${r.host})`}
                      checked={draft.registries.includes(r.id)}
                      onChange={() => flip(r.id)}
                    />
                  ))
                : null}
              {draft.registriesRestricted && draft.registries.length === 0 ? (
                <p className="tone-wait">{t("No registry is selected: no one in this domain can start a session.")}</p>
              ) : null}
              {wrong.registries ? (
                <p className="bad" role="alert">
                  {wrong.registries}
                </p>
              ) : null}
            </fieldset>
          </>
        );
      }}
    </Form>
  );
}

function Facts({ domain, registries }: Omit<Props, "editable">) {
  const allowed = registries.filter((r) => domain.registries.some((x) => x.id === r.id)).map((r) => r.name);
  return (
    <dl className="facts">
      <dt>{t("Description")}</dt>
      <dd>{domain.description || t("none")}</dd>
      <dt>{t("Minimum password length")}</dt>
      <dd>{t("{{n}} characters", { n: domain.passwordMinLength })}</dd>
      <dt>{t("Passwords expire after")}</dt>
      <dd>
        {domain.passwordMaxAgeDays === 0 ? t("never") : t("{{count}} days", { count: domain.passwordMaxAgeDays })}
      </dd>
      <dt>{t("Two-step login")}</dt>
      <dd>{domain.totpRequired ? t("required") : t("optional")}</dd>
      <dt>{t("Who can sign up")}</dt>
      <dd>{t(signUps[domain.signUp])}</dd>
      <dt>{t("Registries")}</dt>
      <dd>{domain.registriesRestricted ? allowed.join(", ") || t("none") : t("all")}</dd>
    </dl>
  );
}
