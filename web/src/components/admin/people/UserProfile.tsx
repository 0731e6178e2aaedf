import { Checkbox, Select, Textarea, TextInput } from "@mantine/core";
import { useState } from "react";
import { useAction } from "../../../hooks/useAction";
import { toast } from "../../../hooks/useToasts";
import { useViewer } from "../../../hooks/useViewer";
import { t } from "../../../i18n";
import { when } from "../../format";
import { Form } from "../Form";
import { grantableRoles, roleNames } from "./rights";
import type { OneUser } from "./user";
import { changed, changesOf, draftOf, type Role, UpdateUser, type UserDraft } from "./userdraft";

const fields = [
  "username",
  "fullName",
  "role",
  "allowedAddresses",
  "containerUid",
  "containerGid",
  "containerGids",
  "passwordChangeRequired",
];

export function UserProfile({ user, editable }: { user: OneUser; editable: boolean }) {
  return editable ? <Edit user={user} /> : <Facts user={user} />;
}

function Edit({ user }: { user: OneUser }) {
  const viewer = useViewer();
  const { run, busy, failure } = useAction(UpdateUser);
  const [draft, setDraft] = useState(() => draftOf(user));
  const { input, wrong: unread } = changesOf(user, draft);
  const set = (more: Partial<UserDraft>) => setDraft({ ...draft, ...more });
  const self = user.id === viewer.user.id;
  const options = [...new Set([...grantableRoles(viewer), user.role])].map((value) => ({
    value,
    label: t(roleNames[value]),
  }));

  async function save() {
    if (!input) return;
    const done = await run({ input });
    if (!done) return;
    setDraft(draftOf(done.updateUser.user));
    toast({ text: t("Saved.") });
  }
  return (
    <Form
      failure={failure}
      fields={fields}
      submit={t("Save")}
      busy={busy}
      disabled={!changed(input)}
      onSubmit={() => void save()}
    >
      {(refused) => {
        const wrong = { ...refused, ...Object.fromEntries(Object.entries(unread).map(([k, v]) => [k, t(v)])) };
        return (
          <>
            <div className="pair">
              <TextInput
                label={t("Full name")}
                value={draft.fullName}
                error={wrong.fullName}
                onChange={(e) => set({ fullName: e.currentTarget.value })}
              />
              <TextInput
                label={t("Username")}
                value={draft.username}
                error={wrong.username}
                onChange={(e) => set({ username: e.currentTarget.value })}
              />
            </div>
            <Select
              label={t("Role")}
              data={options}
              value={draft.role}
              error={wrong.role}
              disabled={self}
              allowDeselect={false}
              description={self ? t("You cannot change your own role.") : undefined}
              onChange={(role) => role && set({ role: role as Role })}
            />
            <Textarea
              label={t("Allowed networks")}
              description={t(
                "One network per line, such as 192.0.2.0/24 or 2001:db8::/32. Leave empty to allow all networks.",
              )}
              autosize
              minRows={2}
              maxRows={8}
              value={draft.allowedAddresses}
              error={wrong.allowedAddresses}
              onChange={(e) => set({ allowedAddresses: e.currentTarget.value })}
            />
            <div className="pair three">
              <TextInput
                label={t("Container UID")}
                inputMode="numeric"
                placeholder={t("from the image")}
                value={draft.containerUid}
                error={wrong.containerUid}
                onChange={(e) => set({ containerUid: e.currentTarget.value })}
              />
              <TextInput
                label={t("Container GID")}
                inputMode="numeric"
                placeholder={t("from the image")}
                value={draft.containerGid}
                error={wrong.containerGid}
                onChange={(e) => set({ containerGid: e.currentTarget.value })}
              />
              <TextInput
                label={t("Additional groups")}
                placeholder={t("none")}
                value={draft.containerGids}
                error={wrong.containerGids}
                onChange={(e) => set({ containerGids: e.currentTarget.value })}
              />
            </div>
            <Checkbox
              label={t("Require a password change")}
              checked={draft.passwordChangeRequired}
              onChange={(e) => set({ passwordChangeRequired: e.currentTarget.checked })}
            />
          </>
        );
      }}
    </Form>
  );
}

function Facts({ user }: { user: OneUser }) {
  const { account } = user;
  return (
    <dl className="facts">
      <dt>{t("Full name")}</dt>
      <dd>{user.fullName || t("none")}</dd>
      <dt>{t("Username")}</dt>
      <dd>{user.username}</dd>
      {account ? (
        <>
          <dt>{t("Allowed networks")}</dt>
          <dd>{account.allowedAddresses.join(", ") || t("all")}</dd>
          <dt>{t("Container UID, GID, groups")}</dt>
          <dd>
            {[
              account.containerUid ?? t("from the image"),
              account.containerGid ?? t("from the image"),
              account.containerGids.join(" ") || t("none"),
            ].join(", ")}
          </dd>
          <dt>{t("Password changed")}</dt>
          <dd>{account.passwordChangedAt ? when(account.passwordChangedAt) : t("never")}</dd>
        </>
      ) : null}
    </dl>
  );
}
