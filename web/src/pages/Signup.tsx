import { Button, PasswordInput, TextInput } from "@mantine/core";
import { Link, useRouteContext, useRouter } from "@tanstack/react-router";
import { type ReactNode, useState } from "react";
import { useQuery } from "urql";
import { login, signUp } from "../api/auth";
import { byField, type Failure, fromGraphQL } from "../api/errors";
import { SignUpOfferQuery } from "../components/account/offer";
import { minLength } from "../components/account/PasswordForm";
import { Mark } from "../components/frame/Mark";
import { FailureNote } from "../components/Note";
import "../components/account/account.css";
import { t } from "../i18n";

type Done = "pending" | "active";

export function Signup() {
  const { invited } = useRouteContext({ from: "/signup" });
  const [done, setDone] = useState<Done | null>(null);
  return (
    <main className="login">
      <div className="card">
        <div className="wordmark">
          <Mark size={28} /> Berth
        </div>
        {done === "pending" ? (
          <Result title={t("Your sign-up is pending approval")}>
            {t("An administrator must approve it. After that, you can log in with your e-mail and password.")}
          </Result>
        ) : null}
        {done === "active" ? (
          <Result title={t("Your account is ready")}>
            {t("Log in with your e-mail and the password that you chose.")}
          </Result>
        ) : null}
        {done === null && invited ? <Form invitation named={false} onDone={setDone} /> : null}
        {done === null && !invited ? <Uninvited onDone={setDone} /> : null}
        <p className="dim">
          <Link to="/login">{t("Back to login")}</Link>
        </p>
      </div>
    </main>
  );
}

/** The sign-up form for visitors without an invitation. Most domains do not offer it. */
function Uninvited({ onDone }: { onDone: (how: Done) => void }) {
  const [{ data, error }] = useQuery({ query: SignUpOfferQuery, requestPolicy: "network-only" });
  if (error) return <FailureNote failure={fromGraphQL(error)} what={t("The server does not respond")} />;
  switch (data?.signUpOffer.mode) {
    case undefined:
      return <p className="dim">{t("Loading…")}</p>;
    case "OFF":
      return (
        <Result title={t("Sign-up is disabled")}>
          {t("The administrators of this platform create all accounts. Ask one of them.")}
        </Result>
      );
    case "INVITATION":
      return (
        <Result title={t("You need an invitation")}>
          {t("Ask an administrator for an invitation, or open the link in your invitation again.")}
        </Result>
      );
  }
  return <Form invitation={false} named={data!.signUpOffer.named} onDone={onDone} />;
}

/** Shows the end of the sign-up. Its heading takes the focus, so that screen readers announce it. */
function Result({ title, children }: { title: string; children: ReactNode }) {
  return (
    <>
      <h1 tabIndex={-1} ref={(h) => h?.focus()} style={{ outline: "none" }}>
        {title}
      </h1>
      <p role="status">{children}</p>
    </>
  );
}

function Form({ invitation, named, onDone }: { invitation: boolean; named: boolean; onDone: (how: Done) => void }) {
  const { history } = useRouter();
  const [person, setPerson] = useState({ email: "", username: "", fullName: "", password: "", domain: "" });
  const [busy, setBusy] = useState(false);
  const [failure, setFailure] = useState<Failure | null>(null);
  const { field, rest } = byField(failure, ["email", "username", "fullName", "password", "domain"]);
  const set = (more: Partial<typeof person>) => setPerson({ ...person, ...more });

  async function submit(event: React.FormEvent) {
    event.preventDefault();
    setBusy(true);
    const done = await signUp({ ...person, email: person.email.trim(), fullName: person.fullName.trim() });
    setBusy(false);
    setFailure(done.failure ?? null);
    if (done.failure) return;
    if (done.status === "pending") return onDone("pending");
    if (await login({ email: person.email.trim(), password: person.password })) return onDone("active");
    history.push("/login");
  }
  return (
    <>
      <h1>{t("Sign up")}</h1>
      <p>
        {invitation
          ? t("You were invited. Use the e-mail address that received the invitation.")
          : t("An administrator must approve new accounts before the first login.")}
      </p>
      <form onSubmit={submit}>
        <TextInput
          label={t("E-mail")}
          type="email"
          autoComplete="email"
          required
          autoFocus
          size="sm"
          value={person.email}
          error={field.email}
          onChange={(e) => set({ email: e.currentTarget.value })}
        />
        <TextInput
          label={t("Full name")}
          autoComplete="name"
          size="sm"
          value={person.fullName}
          error={field.fullName}
          onChange={(e) => set({ fullName: e.currentTarget.value })}
        />
        <TextInput
          label={t("Username")}
          description={t("Short name for paths and lists. Leave empty to derive it from the e-mail.")}
          autoComplete="username"
          autoCapitalize="off"
          spellCheck={false}
          size="sm"
          value={person.username}
          error={field.username}
          onChange={(e) => set({ username: e.currentTarget.value })}
        />
        {named ? (
          <TextInput
            label={t("Domain")}
            description={t("The name of your organization on this platform")}
            required
            size="sm"
            value={person.domain}
            error={field.domain}
            onChange={(e) => set({ domain: e.currentTarget.value })}
          />
        ) : null}
        <PasswordInput
          label={t("Password")}
          description={t("At least {{count}} characters", { count: minLength })}
          autoComplete="new-password"
          required
          minLength={minLength}
          size="sm"
          value={person.password}
          error={field.password}
          aria-invalid={field.password !== undefined}
          onChange={(e) => set({ password: e.currentTarget.value })}
        />
        <FailureNote failure={rest} />
        <Button
          type="submit"
          size="sm"
          loading={busy}
          disabled={!person.email.trim() || [...person.password].length < minLength}
        >
          {t("Sign up")}
        </Button>
      </form>
    </>
  );
}
