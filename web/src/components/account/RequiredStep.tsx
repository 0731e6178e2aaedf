import { logout } from "../../api/auth";
import { t } from "../../i18n";
import { Enrol } from "./Enrol";
import { PasswordForm } from "./PasswordForm";

interface Props {
  due: "password" | "totp";
  email: string;
  /** The password that the user has just logged in with. */
  password?: string;
  onDone: () => void;
}

/** Shows the step that is required directly after a login. */
export default function RequiredStep({ due, email, password, onDone }: Props) {
  return (
    <>
      <h1>{due === "password" ? t("Choose a new password") : t("Set up two-step login")}</h1>
      <p className="dim">{email}</p>
      <p>
        {due === "password"
          ? t("Your password has expired or was set by someone else. Choose a new one to continue.")
          : t("Your domain requires a code in addition to the password. You need a phone with an authenticator app.")}
      </p>
      {due === "password" ? (
        <PasswordForm known={password} onChanged={onDone} />
      ) : (
        <Enrol begin={t("Set up")} done={t("Continue")} onDone={onDone} />
      )}
      <p>
        <button type="button" className="linkish" onClick={() => void logout().then(() => location.assign("/login"))}>
          {t("Log out")}
        </button>
      </p>
    </>
  );
}
