import { Link } from "@tanstack/react-router";
import { Copy } from "../components/Note";
import { t } from "../i18n";

export function NotFound() {
  return (
    <main className="page">
      <NotFoundInFrame />
    </main>
  );
}

/** Shown for an unknown address within the frame. */
export function NotFoundInFrame() {
  return (
    <>
      <h1>{t("Page not found")}</h1>
      <p>
        {t("The address is wrong, or the object was deleted or is not visible to you.")}{" "}
        <Link to="/">{t("Go to Home")}</Link>
      </p>
    </>
  );
}

export function Broken({ error: thrown }: { error: unknown }) {
  const error = thrown instanceof Error ? thrown : new Error(String(thrown));
  return (
    <main className="page">
      <h1>{t("Something went wrong")}</h1>
      <div className="failure" role="alert">
        {error.message} <Copy value={`${error.message}\n${error.stack ?? ""}`} label={t("Copy error")} />
      </div>
      <p>
        <button type="button" className="linkish" onClick={() => location.reload()}>
          {t("Reload")}
        </button>
      </p>
    </main>
  );
}
