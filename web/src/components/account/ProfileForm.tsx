import { Textarea, TextInput } from "@mantine/core";
import { useEffect, useState } from "react";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { Form } from "../admin/Form";
import { networksOf, type Profile } from "./profile";

const UpdateProfile = graphql(`
  mutation UpdateProfile($input: UpdateProfileInput!) {
    updateProfile(input: $input) {
      user { id fullName account { allowedAddresses containerUid containerGid containerGids } }
    }
  }
`);

/** The fields that users can change themselves; administrators change the others. */
export function ProfileForm({ user }: { user: Profile }) {
  const before = { fullName: user.fullName, networks: (user.account?.allowedAddresses ?? []).join("\n") };
  const [fullName, setFullName] = useState(before.fullName);
  const [networks, setNetworks] = useState(before.networks);
  useEffect(() => {
    setFullName(before.fullName);
    setNetworks(before.networks);
  }, [before.fullName, before.networks]);
  const { run, busy, failure } = useAction(UpdateProfile);
  const same = fullName === before.fullName && networks === before.networks;

  async function save() {
    const done = await run({
      input: {
        fullName: fullName.trim(),
        ...(networks === before.networks ? {} : { allowedAddresses: networksOf(networks) }),
      },
    });
    if (done) toast({ text: t("Saved.") });
  }
  return (
    <section className="panel pad" aria-label={t("About you")}>
      <div className="narrow">
        <Form
          failure={failure}
          fields={["fullName", "allowedAddresses"]}
          submit={t("Save")}
          busy={busy}
          disabled={same}
          onSubmit={() => void save()}
        >
          {(wrong) => (
            <>
              <TextInput
                label={t("E-mail")}
                description={t("You log in with this e-mail. You cannot change it.")}
                value={user.email}
                readOnly
                variant="filled"
              />
              <TextInput
                label={t("Full name")}
                autoComplete="name"
                value={fullName}
                error={wrong.fullName}
                onChange={(e) => setFullName(e.currentTarget.value)}
              />
              <Textarea
                label={t("Allowed networks")}
                description={t(
                  "One network per line, such as 192.0.2.0/24 or 2001:db8::/32. Leave empty to allow all networks.",
                )}
                autosize
                minRows={2}
                spellCheck={false}
                value={networks}
                error={wrong.allowedAddresses}
                onChange={(e) => setNetworks(e.currentTarget.value)}
              />
            </>
          )}
        </Form>
      </div>
    </section>
  );
}
