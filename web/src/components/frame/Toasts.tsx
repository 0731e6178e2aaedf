import { CloseButton } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { dismiss, useToasts } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { FailureNote } from "../Note";

export function Toasts() {
  return (
    <section className="toasts" aria-live="polite" aria-label={t("Notifications")}>
      {useToasts().map(({ id, text, failure, link }) => (
        <div key={id} className={`toast${failure ? " bad-edge" : ""}`}>
          <div className="row keep">
            <div style={{ flex: 1, minWidth: 0 }}>
              {text}
              {failure ? <FailureNote failure={failure} /> : null}
            </div>
            {link ? (
              <Link to={link.to} onClick={() => dismiss(id)}>
                {link.label}
              </Link>
            ) : null}
            <CloseButton size="sm" aria-label={t("Close")} onClick={() => dismiss(id)} />
          </div>
        </div>
      ))}
    </section>
  );
}
