import type { ResultOf } from "gql.tada";
import type { ReactNode } from "react";
import { useNames } from "../../../hooks/useNames";
import { language, t } from "../../../i18n";
import { outcomeWord } from "../../../words";
import { Copy } from "../../Note";
import { SidePanel } from "../Panel";
import { entityName } from "./TrailFilters";
import { type AuditQuery, formatMicroseconds, type TrailFilter } from "./trail";

export type Entry = NonNullable<
  NonNullable<NonNullable<ResultOf<typeof AuditQuery>["auditEntries"]["edges"]>[number]>["node"]
>;

export const tone = (result: string) =>
  result === "OK"
    ? "tone-ok"
    : result === "PERMISSION_DENIED" || result === "UNAUTHENTICATED"
      ? "tone-bad"
      : "tone-wait";

/** Shows all fields of one audit entry, with links to related entries. */
export function TrailRow({
  entry: e,
  onFilter,
  onClose,
}: {
  entry: Entry;
  onFilter: (filter: TrailFilter) => void;
  onClose: () => void;
}) {
  const names = useNames([e.entityId, e.domainId, e.projectId, e.actedAsId]);
  const only = (label: string, filter: TrailFilter) => (
    <button type="button" className="linkish" onClick={() => onFilter(filter)}>
      {label}
    </button>
  );
  const facts: [string, ReactNode][] = [
    [t("Time"), new Date(e.at).toLocaleString(language(), { dateStyle: "full", timeStyle: "medium" })],
    [
      t("Actor"),
      <>
        {e.actorEmail || t("unknown")} {e.actorId ? only(t("only this user"), { actor: e.actorId }) : null}
      </>,
    ],
    [
      t("Acting as"),
      e.actedAsId ? (
        <>
          {e.actedAs?.email ?? names[e.actedAsId] ?? <code>{e.actedAsId}</code>}{" "}
          {only(t("only this user"), { as: e.actedAsId })}
        </>
      ) : null,
    ],
    [t("Login, token or keypair"), e.credentialId ? <code key="credential">{e.credentialId}</code> : null],
    [
      t("Action"),
      <span key="action">
        <code>{e.action}</code> {only(t("only this action"), { action: e.action })}
      </span>,
    ],
    [
      t("Object"),
      e.entity ? (
        <>
          {entityName(e.entity)}{" "}
          {e.entityId ? (
            <>
              <b>{names[e.entityId]}</b> <code>{e.entityId}</code>
            </>
          ) : null}
        </>
      ) : null,
    ],
    [t("Domain"), e.domainId ? (names[e.domainId] ?? <code>{e.domainId}</code>) : null],
    [t("Project"), e.projectId ? (names[e.projectId] ?? <code>{e.projectId}</code>) : null],
    [
      t("Result"),
      <span key="result">
        <b className={tone(e.result)}>{outcomeWord(e.result)}</b> <code className="dim">{e.result}</code>
      </span>,
    ],
    [t("Message"), e.message || null],
    [t("Duration"), formatMicroseconds(e.durationUs)],
    [t("Client address"), e.clientAddress || null],
    [
      t("Request ID"),
      e.requestId ? (
        <span key="request" className="row tight">
          <code>{e.requestId}</code> <Copy value={e.requestId} />{" "}
          {only(t("all entries of this request"), { request: e.requestId })}
        </span>
      ) : null,
    ],
  ];
  return (
    <SidePanel title={e.action} onClose={onClose}>
      <dl className="facts">
        {facts.map(([name, value]) =>
          value === null ? null : (
            <div key={name} style={{ display: "contents" }}>
              <dt>{name}</dt>
              <dd>{value}</dd>
            </div>
          ),
        )}
      </dl>
    </SidePanel>
  );
}
