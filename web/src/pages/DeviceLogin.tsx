import { Button, TextInput } from "@mantine/core";
import { Link, useSearch } from "@tanstack/react-router";
import { useEffect, useState } from "react";
import { session } from "../api/auth";
import { answerDevice, type DeviceRequest, deviceRequest } from "../api/device";
import type { Failure } from "../api/errors";
import { when } from "../components/format";
import { Mark } from "../components/frame/Mark";
import { FailureNote } from "../components/Note";
import "../components/account/account.css";
import { t } from "../i18n";

/** Asks for the code that a program shows, and lets the user confirm its login. */
export function DeviceLogin() {
  const { code: given } = useSearch({ from: "/device" });
  const [code, setCode] = useState(given ?? "");
  const [request, setRequest] = useState<DeviceRequest | null>(null);
  const [done, setDone] = useState<"confirmed" | "denied" | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [busy, setBusy] = useState(false);

  async function act<T extends { failure?: Failure }>(work: Promise<T>, then: (answer: T) => void) {
    setBusy(true);
    const answer = await work;
    setBusy(false);
    setFailure(answer.failure ? explained(answer.failure) : null);
    if (!answer.failure) then(answer);
  }
  const look = (typed: string) =>
    act(deviceRequest(typed), (answer) => setRequest("request" in answer ? answer.request : null));
  const decide = (confirm: boolean) =>
    act(answerDevice(code, confirm), () => setDone(confirm ? "confirmed" : "denied"));
  useEffect(() => {
    if (given) void look(given);
  }, []);

  return (
    <main className="login">
      <div className="card">
        <div className="wordmark">
          <Mark size={28} /> Berth
        </div>
        {done ? <Done what={done} /> : null}
        {!done && request ? (
          <>
            <Who request={request} code={code} />
            <FailureNote failure={failure} />
            <div className="row">
              <Button size="sm" loading={busy} onClick={() => void decide(true)}>
                {t("Confirm login")}
              </Button>
              <Button size="sm" variant="default" disabled={busy} onClick={() => void decide(false)}>
                {t("Deny")}
              </Button>
            </div>
          </>
        ) : null}
        {!done && !request ? (
          <>
            <h1>{t("Log in a program")}</h1>
            <form
              onSubmit={(event) => {
                event.preventDefault();
                void look(code);
              }}
            >
              <TextInput
                label={t("Code")}
                description={t("The code that berth login --web shows.")}
                placeholder="XXXX-XXXX"
                autoComplete="off"
                spellCheck={false}
                required
                autoFocus
                size="sm"
                maxLength={16}
                value={code}
                onChange={(e) => setCode(e.currentTarget.value)}
              />
              <FailureNote failure={failure} />
              <Button type="submit" size="sm" loading={busy}>
                {t("Continue")}
              </Button>
            </form>
          </>
        ) : null}
      </div>
    </main>
  );
}

const explained = (failure: Failure): Failure =>
  failure.code === "NOT_FOUND"
    ? { ...failure, message: t("This code does not exist, was used, or is older than 10 minutes.") }
    : failure;

/** Shows which computer waits, and warns of codes that came from another person. */
function Who({ request, code }: { request: DeviceRequest; code: string }) {
  const [user, setUser] = useState("");
  useEffect(() => void session().then((login) => setUser(login?.user.email ?? "")), []);
  const life =
    request.expiresDays === 0
      ? t("until you revoke its token")
      : t("{{count}} days, or until you revoke its token", { count: request.expiresDays });
  return (
    <>
      <h1>{t("Log in this computer?")}</h1>
      <dl className="facts">
        <dt>{t("Code")}</dt>
        <dd>
          <code>{code.toUpperCase()}</code>
        </dd>
        <dt>{t("Computer")}</dt>
        <dd>{t("{{host}}, as it names itself", { host: request.host })}</dd>
        <dt>{t("Address")}</dt>
        <dd>
          <code>{request.address}</code>
        </dd>
        <dt>{t("Program")}</dt>
        <dd>{request.program}</dd>
        <dt>{t("Requested")}</dt>
        <dd>{when(request.createdAt)}</dd>
        <dt>{t("Your user")}</dt>
        <dd>{user}</dd>
        <dt>{t("Access")}</dt>
        <dd>{life}</dd>
      </dl>
      <p className="device-warning" role="note">
        {t(
          "Confirm only if you have just started this login yourself and your program shows the same code. If another person sent you the code or a link to this page, deny it: they would work with your account.",
        )}
      </p>
    </>
  );
}

function Done({ what }: { what: "confirmed" | "denied" }) {
  return (
    <div role="status">
      <h1>{what === "confirmed" ? t("Login confirmed") : t("Login denied")}</h1>
      <p>
        {what === "confirmed"
          ? t("Return to your program: it continues by itself. You can close this page.")
          : t("The program gets no access. If you did not start the login, tell your administrator.")}
      </p>
      {what === "confirmed" ? (
        <p className="dim">
          {t("Its access token is on the page")} <Link to="/account/tokens">{t("Access tokens")}</Link>.
        </p>
      ) : null}
    </div>
  );
}
