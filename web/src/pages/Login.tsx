import { Link, useRouter, useSearch } from "@tanstack/react-router";
import { lazy, Suspense, useEffect, useState } from "react";
import { useQuery } from "urql";
import { refreshSession, type Login as Session, safePath, session } from "../api/auth";
import { LoginForm } from "../components/account/LoginForm";
import { SignUpOfferQuery } from "../components/account/offer";
import { Providers } from "../components/account/Providers";
import { Mark } from "../components/frame/Mark";
import "../components/account/account.css";
import { t } from "../i18n";

const RequiredStep = lazy(() => import("../components/account/RequiredStep"));

/** Shows the login form, then the steps that are required after it. */
export function Login() {
  const { next, error, request } = useSearch({ from: "/login" });
  const { history } = useRouter();
  const [login, setLogin] = useState<Session | null | undefined>();
  const [password, setPassword] = useState<string>();

  const proceed = (current: Session | null) => {
    if (!current || current.due) return setLogin(current);
    const to = safePath(next);
    // The server handles this URL, which opens apps, so leave the router.
    if (to.startsWith("/apps/open?")) location.replace(to);
    else history.push(to);
  };
  useEffect(() => {
    // A visitor whom an identity provider sent back with an error must see that error.
    void session().then(
      (login) => (error && !login?.due ? setLogin(null) : proceed(login)),
      () => setLogin(null),
    );
  }, []);

  return (
    <main className="login">
      <div className={`card${login?.due === "totp" ? " wide" : ""}`}>
        <div className="wordmark">
          <Mark size={28} /> Berth
        </div>
        {login === undefined ? <p className="dim">{t("Loading…")}</p> : null}
        {login?.due ? (
          <Suspense fallback={<p className="dim">{t("Loading…")}</p>}>
            <RequiredStep
              due={login.due}
              email={login.user.email}
              password={password}
              onDone={() => void refreshSession().then(proceed, () => setLogin(null))}
            />
          </Suspense>
        ) : null}
        {login === null ? (
          <LoginForm
            refused={error}
            request={request}
            providers={<Providers next={safePath(next)} force={error === "too_many_logins"} />}
            onLogin={(typed) => {
              setPassword(typed);
              void session().then(proceed);
            }}
          >
            <SignUpLink />
          </LoginForm>
        ) : null}
      </div>
    </main>
  );
}

/** Shows a link to the sign-up page if sign-up is possible. */
function SignUpLink() {
  const [{ data }] = useQuery({ query: SignUpOfferQuery });
  if (!data || data.signUpOffer.mode === "OFF") return null;
  return (
    <p className="dim">
      {t("No account yet?")} <Link to="/signup">{t("Sign up")}</Link>
    </p>
  );
}
