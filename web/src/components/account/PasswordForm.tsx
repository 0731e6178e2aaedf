import { Button, Checkbox, PasswordInput } from "@mantine/core";
import { useEffect, useRef, useState } from "react";
import { useQuery } from "urql";
import { byField } from "../../api/errors";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { t } from "../../i18n";
import { FailureNote } from "../Note";

const PasswordRules = graphql(`query PasswordRules { viewer { user { id email domain { id passwordMinLength } } } }`);
const ChangePassword = graphql(`
  mutation ChangePassword($input: ChangePasswordInput!) {
    changePassword(input: $input) { viewer { initialPassword due user { id } } }
  }
`);

/** The minimum length on every cluster; a domain can require more. */
export const minLength = 10;

interface Props {
  /** The current password, if the user typed it a moment ago. */
  known?: string;
  /** Whether the form offers to revoke all other credentials, too. */
  offerAll?: boolean;
  onChanged: (all: boolean) => void;
}

export function PasswordForm({ known, offerAll, onChanged }: Props) {
  const [{ data }] = useQuery({ query: PasswordRules });
  const [current, setCurrent] = useState(known ?? "");
  const [next, setNext] = useState("");
  const [again, setAgain] = useState("");
  const [all, setAll] = useState(false);
  const { run, busy, failure } = useAction(ChangePassword);
  const { field, rest } = byField(failure, ["current", "new"]);
  const least = Math.max(minLength, data?.viewer.user.domain.passwordMinLength ?? 0);
  const differs = again !== "" && !next.startsWith(again);
  // If the remembered password turns out to be wrong, the user must type it.
  const ask = known === undefined || field.current !== undefined;

  const currentInput = useRef<HTMLInputElement>(null);
  const nextInput = useRef<HTMLInputElement>(null);
  useEffect(() => {
    if (field.current) currentInput.current?.focus();
    else if (field.new) nextInput.current?.focus();
  }, [failure]);

  async function submit(event: React.FormEvent) {
    event.preventDefault();
    if (!(await run({ input: { current, new: next, endCredentials: all } }))) return;
    setCurrent("");
    setNext("");
    setAgain("");
    onChanged(all);
  }
  return (
    <form className="stack" onSubmit={submit}>
      <input
        type="text"
        name="username"
        autoComplete="username"
        value={data?.viewer.user.email ?? ""}
        readOnly
        hidden
      />
      {ask ? (
        <PasswordInput
          ref={currentInput}
          label={t("Current password")}
          autoComplete="current-password"
          required
          value={current}
          onChange={(e) => setCurrent(e.currentTarget.value)}
          error={field.current}
          aria-invalid={field.current !== undefined}
          data-autofocus
        />
      ) : null}
      <PasswordInput
        ref={nextInput}
        label={t("New password")}
        description={t(
          "At least {{count}} characters. It must not be your e-mail, your username or a common password.",
          { count: least },
        )}
        minLength={least}
        autoComplete="new-password"
        required
        value={next}
        onChange={(e) => setNext(e.currentTarget.value)}
        error={field.new}
        aria-invalid={field.new !== undefined}
        {...(ask ? {} : { "data-autofocus": true, autoFocus: true })}
      />
      <PasswordInput
        label={t("Repeat new password")}
        autoComplete="new-password"
        required
        value={again}
        onChange={(e) => setAgain(e.currentTarget.value)}
        error={differs ? t("The passwords do not match.") : undefined}
      />
      {offerAll ? (
        <Checkbox
          checked={all}
          onChange={(e) => setAll(e.currentTarget.checked)}
          label={t("Also revoke all access tokens, keypairs and SSH keys")}
          description={t("Choose this if you think that someone else used your account.")}
        />
      ) : null}
      <FailureNote failure={rest} />
      <div>
        <Button type="submit" loading={busy} disabled={!current || [...next].length < least || next !== again}>
          {t("Change password")}
        </Button>
      </div>
    </form>
  );
}
