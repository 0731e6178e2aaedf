import { Button, CopyButton } from "@mantine/core";
import type { ReactNode } from "react";
import type { Failure } from "../api/errors";
import { t } from "../i18n";
import { withSlotNames } from "../slots";

export function Copy({ value, label }: { value: string; label?: string }) {
  return (
    <CopyButton value={value} timeout={1500}>
      {({ copied, copy }) => (
        <Button variant="subtle" size="compact-xs" onClick={copy} aria-label={label ?? t("Copy {{value}}", { value })}>
          {copied ? t("Copied") : t("Copy")}
        </Button>
      )}
    </CopyButton>
  );
}

/** Shows an error with its code and request ID, so that users can report it. */
export function FailureNote({ failure, what }: { failure: Failure | null; what?: string }) {
  if (!failure) return null;
  const report = `${failure.code} ${failure.message}${failure.requestId ? ` (request ${failure.requestId})` : ""}`;
  return (
    <div className="failure" role="alert">
      <div>
        {what ? <b>{what}: </b> : null}
        {withSlotNames(failure.message)}
        {failure.limit ? ` (${t("limit")} ${failure.limit})` : null}
      </div>
      <div className="codes">
        <code>{failure.code}</code>
        {failure.field ? <code>{failure.field}</code> : null}
        {failure.requestId ? (
          <span>
            {t("request")} <code>{failure.requestId}</code>
          </span>
        ) : null}
        <Copy value={report} label={t("Copy error")} />
      </div>
    </div>
  );
}

/** Shows a shell command with a button that copies it. */
export function Cli({ line }: { line: string }) {
  return (
    <div className="cli">
      <code tabIndex={0}>{line}</code>
      <Copy value={line} label={t("Copy command")} />
    </div>
  );
}

/**
 * Shown in place of an empty list: what the list would contain, how to create the first entry, and the command for it.
 */
export function Empty({ title, children, cli }: { title: string; children?: ReactNode; cli?: string }) {
  return (
    <div className="empty">
      <h2>{title}</h2>
      <div className="dim stack small" style={{ alignItems: "center", marginTop: 4 }}>
        {children}
      </div>
      {cli ? <Cli line={cli} /> : null}
    </div>
  );
}
