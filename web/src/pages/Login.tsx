import { Button, PasswordInput, TextInput } from "@mantine/core";
import { useNavigate, useRouter } from "@tanstack/react-router";
import { useState } from "react";
import { login } from "../api/auth";
import type { Failure } from "../api/errors";
import { Mark } from "../components/Mark";
import { Copy } from "../components/Note";
import { useNow } from "../hooks/useNow";
import { t } from "../i18n";

/** Only paths of this page: an address elsewhere must not get the visitor. */
const own = (next: string | undefined) => (next && /^\/(?![/\\])/.test(next) ? next : "/");

export function Login() {
  const { next } = useRouter().state.location.search as { next?: string };
  const navigate = useNavigate();
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [openAt, setOpenAt] = useState(0);
  const now = useNow(openAt > Date.now());
  const wait = Math.max(0, Math.ceil((openAt - now) / 1000));

  async function submit(event: React.FormEvent) {
    event.preventDefault();
    setBusy(true);
    const why = await login(email.trim(), password);
    setBusy(false);
    setFailure(why);
    if (why?.retryAfter) setOpenAt(Date.now() + why.retryAfter * 1000);
    if (!why) await navigate({ to: own(next) });
  }

  return (
    <main className="login">
      <form onSubmit={submit}>
        <div className="wordmark">
          <Mark size={28} /> Berth
        </div>
        <h1>{t("Log in")}</h1>
        <TextInput label={t("E-mail")} type="email" name="email" autoComplete="username" required autoFocus size="sm" value={email}
          onChange={(e) => setEmail(e.currentTarget.value)} />
        <PasswordInput label={t("Password")} name="password" autoComplete="current-password" required size="sm" value={password}
          onChange={(e) => setPassword(e.currentTarget.value)} />
        {failure ? <Why failure={failure} wait={wait} /> : null}
        <Button type="submit" size="sm" loading={busy} disabled={wait > 0}>
          {t("Log in")}
        </Button>
      </form>
    </main>
  );
}

function Why({ failure, wait }: { failure: Failure; wait: number }) {
  const throttled = failure.retryAfter !== undefined;
  const wrong = failure.code === "UNAUTHENTICATED";
  return (
    <div className="failure" role="alert">
      {wrong ? t("E-mail and password do not belong together.") : null}
      {throttled && wait > 0 ? t("Too many tries. The next one is possible in {{wait}} s.", { wait }) : null}
      {throttled && wait === 0 ? t("You can try again now.") : null}
      {!wrong && !throttled ? failure.message : null}
      {failure.requestId ? (
        <div className="codes">
          <code>{failure.code}</code> {t("request")} <code>{failure.requestId}</code>
          <Copy value={`${failure.code} (request ${failure.requestId})`} label={t("Copy the error")} />
        </div>
      ) : null}
    </div>
  );
}
