import { Button } from "@mantine/core";
import { Link } from "@tanstack/react-router";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { toast } from "../../hooks/useToasts";
import { useViewer } from "../../hooks/useViewer";
import { t } from "../../i18n";
import { word, words } from "../../words";
import { Secret } from "../account/Secret";
import { usePages } from "../admin/usePages";
import { Confirm } from "../Confirm";
import { when } from "../format";
import { Meter } from "../Meter";
import { Cli, Empty, FailureNote } from "../Note";
import { KeyDialog } from "./KeyDialog";
import { type Key, KeyParts } from "./keyParts";
import { type DeploymentDetail, RevokeKey } from "./serving";

const KeysQuery = graphql(
  `
  query DeploymentKeys($first: Int!, $after: Cursor, $where: DeploymentKeyWhereInput) {
    deploymentKeys(first: $first, after: $after, where: $where, orderBy: [{ field: CREATED_AT, direction: DESC }]) {
      totalCount pageInfo { hasNextPage endCursor } edges { node { ...KeyParts } }
    }
  }
`,
  [KeyParts],
);

interface Props {
  /** The deployment that the keys are for; null for the viewer's keys for all of their deployments. */
  deployment: DeploymentDetail | null;
  over?: boolean;
}

/** Keys for requests to models: creation, limits, use, revocation. */
export function Keys({ deployment: d, over = false }: Props) {
  const me = useViewer().user.id;
  const [single, setSingle] = useState(false);
  const mine = single ? { userID: me } : { userID: me, deploymentIDIsNil: true };
  const list = usePages({
    query: KeysQuery,
    variables: { where: { ...(d ? { deploymentID: d.id } : mine), revokedAtIsNil: true } },
    pick: (data) => data.deploymentKeys,
  });
  const revoke = useAction(RevokeKey);
  const [editing, setEditing] = useState<Key | "new" | null>(null);
  const [revoking, setRevoking] = useState<Key | null>(null);
  const [secret, setSecret] = useState<string | null>(null);
  return (
    <div className="stack">
      <div className="row">
        <p className="dim">
          {d?.open ? t("Requests need no key.") : t("A program sends a key with each request.")}{" "}
          {d ? <Link to="/account/model-keys">{t("Keys for all of your deployments")}</Link> : null}
        </p>
        {d ? null : (
          <button type="button" className="chip push" aria-pressed={single} onClick={() => setSingle(!single)}>
            {t("Those for one deployment too")}
          </button>
        )}
        <Button className={d ? "push" : ""} variant="default" disabled={over} onClick={() => setEditing("new")}>
          {t("New key")}
        </Button>
      </div>
      <FailureNote failure={list.failure} />
      {secret ? (
        <Secret title={t("Your new key")} values={[{ label: t("Key"), value: secret }]} onClose={() => setSecret(null)}>
          <p className="dim">{t("Programs read it from a variable, for example:")}</p>
          <Cli line="export BERTH_MODEL_KEY=…" />
        </Secret>
      ) : null}
      <section className="panel" aria-label={t("Keys")}>
        {!list.loading && list.rows.length === 0 ? (
          <Empty title={d ? t("No keys for this deployment") : t("No keys")}>
            {t("A key lets a program send requests, within limits of requests and tokens.")}
          </Empty>
        ) : null}
        <ul className="rows">
          {list.rows.map((k) => (
            <li key={k.id}>
              <div className="entry">
                <div className="row tight">
                  <b>{k.name}</b> <code className="dim">{k.prefix}…</code>
                  <span className="dim">
                    {d ? k.user.email : (k.deployment?.name ?? t("for all of your deployments"))}
                  </span>
                  {limitsOf(k).map((text) => (
                    <span key={text} className="tag">
                      {text}
                    </span>
                  ))}
                </div>
                <span className="dim">
                  {t("{{requests}} requests, {{tokens}} tokens used", {
                    requests: k.usedRequests,
                    tokens: k.usedTokens,
                  })}
                  {" · "}
                  {k.expiresAt ? t("expires {{time}}", { time: when(k.expiresAt) }) : t("never expires")}
                  {" · "}
                  {k.lastUsedAt ? t("last used {{time}}", { time: when(k.lastUsedAt) }) : t("never used")}
                </span>
                {k.tokenBudget > 0 ? (
                  <Meter
                    label={t("Used tokens of key {{name}}", { name: k.name })}
                    used={k.usedTokens}
                    limit={k.tokenBudget}
                    full={0.9}
                  />
                ) : null}
              </div>
              <Button
                variant="subtle"
                size="compact-sm"
                aria-label={t("Limits of {{name}}", { name: k.name })}
                onClick={() => setEditing(k)}
              >
                {t("Limits")}
              </Button>
              <Button
                variant="subtle"
                color="red"
                size="compact-sm"
                aria-label={t("Revoke {{name}}", { name: k.name })}
                onClick={() => setRevoking(k)}
              >
                {t("Revoke")}
              </Button>
            </li>
          ))}
        </ul>
        {list.more ? (
          <div className="panel-foot">
            <Button variant="subtle" size="compact-sm" loading={list.loading} onClick={list.more}>
              {t("Show more")}
            </Button>
          </div>
        ) : null}
      </section>
      {editing ? (
        <KeyDialog
          deployment={d?.id ?? null}
          now={editing === "new" ? null : editing}
          onClose={() => setEditing(null)}
          onMade={(made) => {
            setEditing(null);
            setSecret(made);
            list.reload();
          }}
        />
      ) : null}
      <Confirm
        opened={revoking !== null}
        title={t("Revoke key {{name}}?", { name: revoking?.name ?? "" })}
        action={t("Revoke")}
        busy={revoke.busy}
        failure={revoke.failure}
        onConfirm={async () => {
          if (!revoking || !(await revoke.run({ input: { id: revoking.id } }))) return;
          toast({ text: t("{{name}} was revoked.", { name: revoking.name }) });
          setRevoking(null);
          list.reload();
        }}
        onClose={() => setRevoking(null)}
      >
        {t("Programs that use it get errors at once. It cannot be used again.")}
      </Confirm>
    </div>
  );
}

function limitsOf(k: Key): string[] {
  const limits: [number, string][] = [
    [k.requestsPerMinute, t("{{n}} requests/min", { n: k.requestsPerMinute })],
    [k.tokensPerMinute, t("{{n}} tokens/min", { n: k.tokensPerMinute })],
    [k.tokenBudget, t("{{n}} tokens in all", { n: k.tokenBudget })],
  ];
  const apis = k.apis.length < Object.keys(words.ModelAPI).length ? k.apis.map((api) => word("ModelAPI", api)) : [];
  return [...apis, ...limits.flatMap(([n, text]) => (n > 0 ? [text] : []))];
}
