import { Button, PasswordInput, TextInput } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useRouter } from "@tanstack/react-router";
import { useState } from "react";
import { refreshSession } from "../../api/auth";
import { byField } from "../../api/errors";
import { graphql } from "../../api/graphql";
import { Enrol } from "../../components/account/Enrol";
import { RecoveryCodes } from "../../components/account/RecoveryCodes";
import { FormDialog } from "../../components/admin/Form";
import { when } from "../../components/format";
import { FailureNote } from "../../components/Note";
import { useAction } from "../../hooks/useAction";
import { useLiveQuery } from "../../hooks/useLiveQuery";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";

const TotpQuery = graphql(`query Totp { viewer { totpEnabledAt user { id domain { id totpRequired } } } }`);
const Regenerate = graphql(`
  mutation RegenerateRecoveryCodes($input: RegenerateRecoveryCodesInput!) {
    regenerateRecoveryCodes(input: $input) { codes }
  }
`);
const DisableTotp = graphql(
  `mutation DisableTotp($input: DisableTotpInput!) { disableTotp(input: $input) { viewer { totpEnabledAt user { id } } } }`,
);

export function SecondStep() {
  const { data, failure, refetch } = useLiveQuery({ query: TotpQuery });
  const since = data?.viewer.totpEnabledAt;
  const required = data?.viewer.user.domain.totpRequired ?? false;
  const [enrolling, setEnrolling] = useState(false);
  const { history } = useRouter();

  /** If the domain requires two-step login, the user must set it up again immediately. */
  async function off() {
    if (!required) return refetch();
    await refreshSession();
    history.push("/login?next=%2Faccount%2Fsecond-step");
  }
  return (
    <>
      <div className="page-head">
        <h1>{t("Two-step login")}</h1>
        {data ? (
          <span className={`tag${since ? " on" : ""}`}>
            {since ? t("on since {{at}}", { at: when(since) }) : t("off")}
          </span>
        ) : null}
      </div>
      <FailureNote failure={failure} />
      <p>{t("A login asks for the password and for a code from your phone. A stolen password alone is not enough.")}</p>
      {data && (!since || enrolling) ? (
        <section className="panel pad" aria-label={t("Turn on")}>
          <Enrol
            begin={t("Set up")}
            done={t("Done")}
            onBegin={() => setEnrolling(true)}
            onDone={() => {
              setEnrolling(false);
              refetch();
            }}
          />
        </section>
      ) : null}
      {since && !enrolling ? <Renew /> : null}
      {since && !enrolling ? <Disable required={required} onDone={off} /> : null}
    </>
  );
}

function Renew() {
  const { run, busy, failure } = useAction(Regenerate);
  const { field, rest } = byField(failure, ["code"]);
  const [code, setCode] = useState("");
  const [codes, setCodes] = useState<string[] | null>(null);
  if (codes) return <RecoveryCodes codes={codes} done={t("Done")} onDone={() => setCodes(null)} />;
  return (
    <section className="panel" aria-labelledby="renew">
      <div className="panel-head">
        <h2 id="renew">{t("Recovery codes")}</h2>
      </div>
      <form
        className="body stack narrow"
        onSubmit={async (event) => {
          event.preventDefault();
          const done = await run({ input: { code: code.trim() } });
          setCode("");
          if (done) setCodes(done.regenerateRecoveryCodes.codes);
        }}
      >
        <p className="dim">{t("They let you log in without your phone. New codes replace all old ones.")}</p>
        <CodeInput value={code} error={field.code} onChange={setCode} />
        <FailureNote failure={rest} />
        <div>
          <Button type="submit" variant="default" loading={busy} disabled={!code.trim()}>
            {t("Generate new codes")}
          </Button>
        </div>
      </form>
    </section>
  );
}

function Disable({ required, onDone }: { required: boolean; onDone: () => void }) {
  const [opened, { open, close }] = useDisclosure(false);
  const { run, busy, failure, clear } = useAction(DisableTotp);
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const title = required ? t("New phone") : t("Turn off");
  function end() {
    setPassword("");
    setCode("");
    clear();
    close();
  }
  async function turnOff() {
    const done = await run({ input: { password, code: code.trim() } });
    setCode("");
    if (!done) return;
    if (!required) toast({ text: t("Two-step login was turned off.") });
    onDone();
    end();
  }
  return (
    <section className="panel" aria-labelledby="disable">
      <div className="panel-head">
        <h2 id="disable">{title}</h2>
      </div>
      <div className="body stack">
        <p className="dim">
          {required
            ? t("Your domain requires two-step login. To use a new phone, set it up again.")
            : t("To use a new phone, turn two-step login off and set it up again.")}
        </p>
        <div>
          <Button variant="light" color="red" onClick={open}>
            {required ? t("Set up again…") : t("Turn off…")}
          </Button>
        </div>
      </div>
      {opened ? (
        <FormDialog
          title={required ? t("Set up two-step login again?") : t("Turn off two-step login?")}
          failure={failure}
          fields={["password", "code"]}
          submit={required ? t("Continue") : t("Turn off")}
          busy={busy}
          disabled={!password || !code.trim()}
          onClose={end}
          onSubmit={() => void turnOff()}
        >
          {(wrong) => (
            <>
              <p>
                {required
                  ? t("The current authenticator app and recovery codes stop working. You set up new ones next.")
                  : t("After that, your password alone is enough to log in. The recovery codes stop working.")}
              </p>
              <PasswordInput
                label={t("Password")}
                autoComplete="current-password"
                required
                data-autofocus
                value={password}
                error={wrong.password}
                aria-invalid={wrong.password !== undefined}
                onChange={(e) => setPassword(e.currentTarget.value)}
              />
              <CodeInput value={code} error={wrong.code} onChange={setCode} />
            </>
          )}
        </FormDialog>
      ) : null}
    </section>
  );
}

function CodeInput({ value, error, onChange }: { value: string; error?: string; onChange: (code: string) => void }) {
  return (
    <TextInput
      label={t("Code from your authenticator app, or a recovery code")}
      autoComplete="one-time-code"
      autoCapitalize="off"
      spellCheck={false}
      required
      value={value}
      error={error}
      onChange={(e) => onChange(e.currentTarget.value)}
    />
  );
}
