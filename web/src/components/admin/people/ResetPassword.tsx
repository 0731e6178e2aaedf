import { Checkbox, Modal, PasswordInput, SegmentedControl } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { useFocusBack } from "../../../hooks/useFocusBack";
import { t } from "../../../i18n";
import { Form } from "../Form";
import { ShownOnce } from "./ShownOnce";

const Reset = graphql(`
  mutation ResetPasswordOf($input: ResetUserPasswordInput!) {
    resetUserPassword(input: $input) { password user { id account { passwordChangeRequired passwordChangedAt } } }
  }
`);

/** Sets a temporary password, which the user must change at the next login. A generated one is shown once. */
export function ResetPassword({ user, onClose }: { user: { id: string; email: string }; onClose: () => void }) {
  useFocusBack();
  const { run, busy, failure } = useAction(Reset);
  const [how, setHow] = useState("generated");
  const [password, setPassword] = useState("");
  const [all, setAll] = useState(true);
  const [done, setDone] = useState<{ made: string | null } | null>(null);
  return (
    <Modal
      opened
      onClose={onClose}
      closeOnClickOutside={!done}
      title={t("Reset the password of {{name}}", { name: user.email })}
      closeButtonProps={{ "aria-label": t("Close") }}
    >
      {done ? (
        <ShownOnce
          secret={done.made}
          onClose={onClose}
          text={
            done.made
              ? t(
                  "Send this password to the user. It is shown only now, and the user must choose a new one at the next login.",
                )
              : t("The password was set. The user must choose a new one at the next login.")
          }
        />
      ) : (
        <Form
          failure={failure}
          fields={["password"]}
          submit={t("Reset")}
          busy={busy}
          disabled={how === "typed" && !password}
          onCancel={onClose}
          onSubmit={async () => {
            const result = await run({
              input: { user: user.id, password: how === "typed" ? password : null, keepCredentials: !all },
            });
            if (result) setDone({ made: result.resetUserPassword.password });
          }}
        >
          {(wrong) => (
            <>
              <p>{t("The user is logged out everywhere and must choose a new password at the next login.")}</p>
              <SegmentedControl
                aria-label={t("How to set the password")}
                value={how}
                onChange={setHow}
                data={[
                  { value: "generated", label: t("Generate a password") },
                  { value: "typed", label: t("Enter a password") },
                ]}
              />
              {how === "typed" ? (
                <PasswordInput
                  label={t("New password")}
                  autoComplete="new-password"
                  required
                  value={password}
                  error={wrong.password}
                  onChange={(e) => setPassword(e.currentTarget.value)}
                />
              ) : null}
              <Checkbox
                checked={all}
                onChange={(e) => setAll(e.currentTarget.checked)}
                label={t("Also revoke all access tokens, keypairs and SSH keys")}
              />
            </>
          )}
        </Form>
      )}
    </Modal>
  );
}
