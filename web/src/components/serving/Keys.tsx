import { Button, NumberInput, Select, TextInput } from "@mantine/core";
import { useState } from "react";
import { graphql, type ResultOf } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { Secret } from "../account/Secret";
import { endsAt, lifetimes } from "../account/token";
import { FormDialog } from "../admin/Form";
import { usePages } from "../admin/usePages";
import { Confirm } from "../Confirm";
import { when } from "../format";
import { Meter } from "../Meter";
import { Cli, Empty, FailureNote } from "../Note";
import { CreateKey, type DeploymentDetail, inLine, RevokeKey } from "./serving";

const KeyParts = graphql(`
  fragment KeyParts on DeploymentKey @_unmask {
    id name prefix requestsPerMinute tokensPerMinute tokenBudget usedRequests usedTokens
    createdAt expiresAt lastUsedAt user { id email } deployment { id name }
  }
`);
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
const UpdateKey = graphql(
  `
  mutation UpdateDeploymentKey($input: UpdateDeploymentKeyInput!) {
    updateDeploymentKey(input: $input) { key { ...KeyParts } }
  }
`,
  [KeyParts],
);
type Key = ResultOf<typeof KeyParts>;

/** The keys for one deployment: creation, limits, use, revocation. */
export function Keys({ deployment: d, over }: { deployment: DeploymentDetail; over: boolean }) {
  const list = usePages({
    query: KeysQuery,
    variables: { where: { deploymentID: d.id, revokedAtIsNil: true } },
    pick: (data) => data.deploymentKeys,
  });
  const revoke = useAction(RevokeKey);
  const [editing, setEditing] = useState<Key | "new" | null>(null);
  const [revoking, setRevoking] = useState<Key | null>(null);
  const [secret, setSecret] = useState<string | null>(null);
  return (
    <div className="stack">
      <div className="row">
        <span className="dim">
          {d.open
            ? t("Requests need no key.")
            : t(
                "A program sends a key with each request. Keys for all of your deployments are made with berth deploy key create.",
              )}
        </span>
        <Button className="push" variant="default" disabled={over} onClick={() => setEditing("new")}>
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
          <Empty title={t("No keys for this deployment")}>
            {t("A key lets a program send requests, within limits of requests and tokens.")}
          </Empty>
        ) : null}
        <ul className="rows">
          {list.rows.map((k) => (
            <li key={k.id}>
              <div className="entry">
                <div className="row tight">
                  <b>{k.name}</b> <code className="dim">{k.prefix}…</code>
                  <span className="dim">{k.user.email}</span>
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
          deployment={d}
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
  return limits.flatMap(([n, text]) => (n > 0 ? [text] : []));
}

interface DialogProps {
  deployment: DeploymentDetail;
  /** The key whose limits are changed; null for a new one. */
  now: Key | null;
  onClose: () => void;
  onMade: (secret: string) => void;
}

function KeyDialog({ deployment: d, now, onClose, onMade }: DialogProps) {
  const create = useAction(CreateKey);
  const update = useAction(UpdateKey);
  const [name, setName] = useState("");
  const [requestsPerMinute, setRequests] = useState<number | string>(now?.requestsPerMinute ?? 0);
  const [tokensPerMinute, setTokens] = useState<number | string>(now?.tokensPerMinute ?? 0);
  const [tokenBudget, setBudget] = useState<number | string>(now?.tokenBudget ?? 0);
  const [lifetime, setLifetime] = useState("90");
  const [day, setDay] = useState("");
  const ends = endsAt(lifetime, day);
  const limits = {
    requestsPerMinute: Number(requestsPerMinute),
    tokensPerMinute: Number(tokensPerMinute),
    tokenBudget: Number(tokenBudget),
  };

  async function submit() {
    if (now) {
      if (await update.run({ input: { id: now.id, ...limits } })) onClose();
      return;
    }
    const done = await create.run({
      input: { name: name.trim(), deployment: d.id, expiresAt: ends ?? null, ...limits },
    });
    if (done) onMade(done.createDeploymentKey.secret);
  }
  return (
    <FormDialog
      title={now ? t("Limits of {{name}}", { name: now.name }) : t("New key")}
      failure={create.failure ?? update.failure}
      fields={["name", "expiresAt", "requestsPerMinute", "tokensPerMinute", "tokenBudget"]}
      submit={now ? t("Save") : t("Create")}
      busy={create.busy || update.busy}
      disabled={!now && (!name.trim() || ends === undefined)}
      onClose={onClose}
      onSubmit={() => void submit()}
    >
      {(wrong) => (
        <>
          {now ? null : (
            <TextInput
              label={t("Name")}
              description={t("What will use it?")}
              required
              data-autofocus
              maxLength={64}
              value={name}
              error={wrong.name}
              onChange={(e) => setName(e.currentTarget.value)}
            />
          )}
          <div className="pairs wider">
            {(
              [
                ["requestsPerMinute", t("Requests in a minute"), requestsPerMinute, setRequests],
                ["tokensPerMinute", t("Tokens in a minute"), tokensPerMinute, setTokens],
                ["tokenBudget", t("Tokens in all"), tokenBudget, setBudget],
              ] as const
            ).map(([field, label, value, set]) => (
              <NumberInput
                key={field}
                label={label}
                inputWrapperOrder={inLine}
                description={t("0 = no limit")}
                min={0}
                allowDecimal={false}
                thousandSeparator=" "
                value={value}
                error={wrong[field]}
                onChange={set}
              />
            ))}
          </div>
          {now ? null : (
            <>
              <Select
                label={t("Expires after")}
                value={lifetime}
                error={lifetime === "day" ? undefined : wrong.expiresAt}
                data={lifetimes.map((l) => ({ ...l, label: t(l.label) }))}
                onChange={(l) => l && setLifetime(l)}
              />
              {lifetime === "day" ? (
                <TextInput
                  type="date"
                  label={t("Last valid day")}
                  required
                  value={day}
                  error={wrong.expiresAt}
                  onChange={(e) => setDay(e.currentTarget.value)}
                />
              ) : null}
            </>
          )}
        </>
      )}
    </FormDialog>
  );
}
