import { Button, PasswordInput, TextInput } from "@mantine/core";
import { type ReactNode, useState } from "react";
import { login } from "../../api/auth";
import type { Failure } from "../../api/errors";
import { useNow } from "../../hooks/useNow";
import { t } from "../../i18n";
import { duration } from "../format";
import { Copy } from "../Note";
import { afterLogin, externalErrors } from "./login";

interface Props {
  /** The server's code for a failed login at an identity provider, and the ID of that request. */
  refused?: string;
  request?: string;
  providers: ReactNode;
  /** Called after the login with the password that the user typed. */
  onLogin: (password: string) => void;
  children?: ReactNode;
}

/** Asks for e-mail and password, then for a code or for revoking the oldest login if the server requires it. */
export function LoginForm({ refused, request, providers, onLogin, children }: Props) {
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [code, setCode] = useState("");
  const [step, setStep] = useState<"who" | "code" | "room">("who");
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [openAt, setOpenAt] = useState(0);
  const now = useNow(openAt > Date.now());
  const wait = Math.max(0, Math.ceil((openAt - now) / 1000));

  async function submit(event: React.FormEvent) {
    event.preventDefault();
    setBusy(true);
    const refusal = await login({
      email: email.trim(),
      password,
      ...(code ? { code: code.trim() } : {}),
      ...(step === "room" ? { force: true } : {}),
    });
    setBusy(false);
    if (!refusal) return onLogin(password);
    if (refusal.retryAfter) setOpenAt(Date.now() + refusal.retryAfter * 1000);
    const next = afterLogin(refusal, code !== "");
    if (next.step) setStep(next.step);
    if (next.step !== "room") setCode("");
    setFailure(next.show ? refusal : null);
  }
  function restart() {
    setStep("who");
    setCode("");
    setPassword("");
    setFailure(null);
  }

  const alert = failure ? <Why failure={failure} step={step} wait={wait} /> : null;
  if (step === "who") {
    return (
      <>
        <h1>{t("Log in")}</h1>
        {refused && !failure ? <Refused word={refused} request={request} /> : null}
        <form onSubmit={submit}>
          <TextInput
            label={t("E-mail")}
            type="email"
            name="email"
            autoComplete="username"
            required
            autoFocus
            size="sm"
            value={email}
            onChange={(e) => setEmail(e.currentTarget.value)}
          />
          <PasswordInput
            label={t("Password")}
            name="password"
            autoComplete="current-password"
            required
            size="sm"
            value={password}
            onChange={(e) => setPassword(e.currentTarget.value)}
          />
          {alert}
          <Button type="submit" size="sm" loading={busy} disabled={wait > 0}>
            {t("Log in")}
          </Button>
        </form>
        {providers}
        {children}
      </>
    );
  }
  return (
    <>
      <h1>{step === "code" ? t("Two-step login") : t("Too many logins")}</h1>
      <p className="dim">{email.trim()}</p>
      <form onSubmit={submit}>
        {step === "code" ? (
          <TextInput
            key="code"
            label={t("Code from your authenticator app, or a recovery code")}
            name="code"
            autoComplete="one-time-code"
            required
            autoFocus
            autoCapitalize="off"
            spellCheck={false}
            size="sm"
            value={code}
            onChange={(e) => setCode(e.currentTarget.value)}
          />
        ) : null}
        {alert}
        <Button
          key={`go ${step}`}
          type="submit"
          size="sm"
          loading={busy}
          disabled={wait > 0}
          autoFocus={step === "room"}
        >
          {step === "code" ? t("Continue") : t("Revoke the oldest login and continue")}
        </Button>
        <Button variant="subtle" size="sm" onClick={restart}>
          {step === "code" ? t("Log in as another user") : t("Cancel")}
        </Button>
      </form>
    </>
  );
}

function Why({ failure, step, wait }: { failure: Failure; step: string; wait: number }) {
  const throttled = failure.retryAfter !== undefined;
  if (step === "room" && failure.field === "force") {
    return (
      <div role="alert">
        {t(
          "You have {{count}} logins, which is your limit. To continue, revoke the oldest login. Your running sessions are not affected.",
          { count: Number(failure.limit ?? 1) },
        )}
      </div>
    );
  }
  const plain =
    failure.field === "code" ? t("The code is wrong or was already used.") : t("Incorrect e-mail or password.");
  const wrong = failure.code === "UNAUTHENTICATED";
  const closed = failure.field === "logins";
  return (
    <div className="failure" role="alert">
      {wrong ? plain : null}
      {throttled && wait > 0
        ? t("Too many attempts. You can try again in {{wait}}.", { wait: duration(wait * 1000) })
        : null}
      {throttled && wait === 0 ? t("You can try again now.") : null}
      {closed ? t("Your limits do not allow any logins. Ask an administrator.") : null}
      {!wrong && !throttled && !closed ? failure.message : null}
      {failure.requestId ? <Codes code={failure.code} request={failure.requestId} /> : null}
    </div>
  );
}

function Refused({ word, request }: { word: string; request?: string }) {
  return (
    <div className="failure" role="alert">
      {t(externalErrors[word] ?? "The login failed. Try again, or ask an administrator.")}
      {request ? <Codes code={word} request={request} /> : null}
    </div>
  );
}

function Codes({ code, request }: { code: string; request: string }) {
  return (
    <div className="codes">
      <code>{code}</code> {t("request")} <code>{request}</code>
      <Copy value={`${code} (request ${request})`} label={t("Copy error")} />
    </div>
  );
}
