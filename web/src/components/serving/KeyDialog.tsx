import { Checkbox, NumberInput } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../api/graphql";
import { useAction } from "../../hooks/useAction";
import { t } from "../../i18n";
import { word, words } from "../../words";
import { LifetimeFields, NameField, useLifetime } from "../account/credentialFields";
import { FormDialog } from "../admin/Form";
import { type Key, KeyParts } from "./keyParts";
import { CreateKey, inLine } from "./serving";

const UpdateKey = graphql(
  `
  mutation UpdateDeploymentKey($input: UpdateDeploymentKeyInput!) {
    updateDeploymentKey(input: $input) { key { ...KeyParts } }
  }
`,
  [KeyParts],
);
const apis = Object.keys(words.ModelAPI) as Key["apis"];

interface Props {
  /** The only deployment of a new key; null: all that the viewer can see. */
  deployment: string | null;
  /** The key whose limits are changed; null for a new one. */
  now: Key | null;
  onClose: () => void;
  onMade: (secret: string) => void;
}

/** Creates a key, or changes the limits of one. */
export function KeyDialog({ deployment, now, onClose, onMade }: Props) {
  const create = useAction(CreateKey);
  const update = useAction(UpdateKey);
  const [name, setName] = useState("");
  const [requestsPerMinute, setRequests] = useState<number | string>(now?.requestsPerMinute ?? 0);
  const [tokensPerMinute, setTokens] = useState<number | string>(now?.tokensPerMinute ?? 0);
  const [tokenBudget, setBudget] = useState<number | string>(now?.tokenBudget ?? 0);
  const [picked, setPicked] = useState<string[]>(apis);
  const valid = useLifetime();
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
      input: {
        name: name.trim(),
        deployment,
        expiresAt: valid.ends ?? null,
        ...limits,
        ...(picked.length < apis.length ? { apis: apis.filter((a) => picked.includes(a)) } : {}),
      },
    });
    if (done) onMade(done.createDeploymentKey.secret);
  }
  return (
    <FormDialog
      title={now ? t("Limits of {{name}}", { name: now.name }) : t("New key")}
      failure={create.failure ?? update.failure}
      fields={["name", "apis", "expiresAt", "requestsPerMinute", "tokensPerMinute", "tokenBudget"]}
      submit={now ? t("Save") : t("Create")}
      busy={create.busy || update.busy}
      disabled={!now && (!name.trim() || picked.length === 0 || valid.ends === undefined)}
      onClose={onClose}
      onSubmit={() => void submit()}
    >
      {(wrong) => (
        <>
          {now ? null : <NameField value={name} error={wrong.name} onChange={setName} />}
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
              <Checkbox.Group
                label={t("APIs")}
                value={picked}
                onChange={setPicked}
                error={wrong.apis ?? (picked.length === 0 ? t("Choose at least one API.") : undefined)}
              >
                <div className="row" style={{ flexWrap: "wrap", gap: "6px 16px", margin: "6px 0" }}>
                  {apis.map((api) => (
                    <Checkbox key={api} value={api} label={word("ModelAPI", api)} />
                  ))}
                </div>
              </Checkbox.Group>
              <LifetimeFields of={valid} error={wrong.expiresAt} />
            </>
          )}
        </>
      )}
    </FormDialog>
  );
}
