import { Button } from "@mantine/core";
import { useState } from "react";
import { useQuery } from "urql";
import { fromGraphQL } from "../../../api/errors";
import { graphql } from "../../../api/graphql";
import { t } from "../../../i18n";
import { FailureNote } from "../../Note";
import { bytes } from "../../format";
import { Part } from "../Panel";

const OrphansQuery = graphql(`
  query Orphans($id: ID!) {
    node(id: $id) { ... on Volume { id orphans { complete scopes { scope usedBytes } folders { state scope folder path } missing { id name owner { id email } project { id name } } } } }
  }
`);

const states: Record<string, string> = { present: "a folder that nobody knows", arriving: "half made", deleting: "half deleted", stray: "not made by Berth" };

/** How what lies on a volume differs from what is known; looked for only when asked, because the whole volume is read. */
export function VolumeOrphans({ volume }: { volume: string }) {
  const [asked, setAsked] = useState(false);
  const [{ data, error, fetching }, again] = useQuery({ query: OrphansQuery, variables: { id: volume }, pause: !asked, requestPolicy: "network-only" });
  const found = asked && data?.node && "orphans" in data.node ? data.node.orphans : null;
  const none = found && found.scopes.length + found.folders.length + found.missing.length === 0;
  return (
    <Part title={t("Orphans")} aside={<Button variant="default" loading={fetching} onClick={() => (asked ? again() : setAsked(true))}>{asked ? t("Look again") : t("Look now")}</Button>}>
      <p className="dim">{t("What lies on the volume and belongs to nobody, and folders that are not there.")}</p>
      <FailureNote failure={error ? fromGraphQL(error) : null} />
      {none ? <p>{t("Nothing: what lies there is what is known.")}</p> : null}
      {found && !none ? (
        <ul className="rows" aria-label={t("Orphans")}>
          {found.missing.map((f) => <li key={f.id}><span className="bad">{t("not on the volume")}</span> <b>{f.name}</b> <span className="dim">{f.project?.name ?? f.owner?.email}</span></li>)}
          {found.folders.map((f) => <li key={f.path} style={{ flexWrap: "wrap" }}><span className="tone-wait">{t(states[f.state] ?? f.state)}</span> <code style={{ overflowWrap: "anywhere" }}>{f.path}</code></li>)}
          {found.scopes.map((s) => <li key={s.scope}><span className="tone-wait">{t("a scope of nobody")}</span> <code>{s.scope}</code> <span className="dim">{s.usedBytes === null ? "" : bytes(s.usedBytes)}</span></li>)}
        </ul>
      ) : null}
      {found && !found.complete ? <p className="tone-wait">{t("There are more; at most 1000 of each are told.")}</p> : null}
    </Part>
  );
}
