import { Button } from "@mantine/core";
import { useState } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { useViewer } from "../../../hooks/useViewer";
import { t } from "../../../i18n";
import { Confirm } from "../../Confirm";
import type { Attachment } from "./attachment";
import { holderOf, holderText } from "./holder";
import { attachableHolders } from "./rights";

const Detach = graphql(
  `mutation DetachResourcePolicy($input: DetachResourcePolicyInput!) { detachResourcePolicy(input: $input) { id } }`,
);

interface Props {
  label: string;
  list: Attachment[];
  /** The first column of a row: the holder, or the policy. */
  first: "holder" | "policy";
  onDone: () => void;
}

/** Lists where policies are attached, each with a button that detaches it. */
export function Attachments({ label, list, first, onDone }: Props) {
  const viewer = useViewer();
  const { run, busy, failure, clear } = useAction(Detach);
  const [detaching, setDetaching] = useState<Attachment | null>(null);
  const mayDetach = (a: Attachment) => (attachableHolders(viewer) as string[]).includes(holderOf(a).kind);
  async function detach() {
    if (!detaching || !(await run({ input: { id: detaching.id } }))) return;
    setDetaching(null);
    onDone();
  }
  return (
    <>
      <ul className="rows" aria-label={label}>
        {list.map((a) => (
          <li key={a.id}>
            <span>
              {first === "policy" ? (
                <>
                  <b>{a.policy.name}</b> <span className="dim">{t("on {{holder}}", { holder: holderText(a) })}</span>
                </>
              ) : (
                holderText(a)
              )}
              {a.resourceGroup ? (
                <span className="dim"> {t("only in resource group {{name}}", { name: a.resourceGroup.name })}</span>
              ) : null}
              {a.withinProject ? (
                <span className="dim"> {t("only in project {{name}}", { name: a.withinProject.name })}</span>
              ) : null}
            </span>
            {mayDetach(a) ? (
              <Button
                className="push"
                variant="subtle"
                color="red"
                size="compact-xs"
                aria-label={t("Detach {{policy}} from {{holder}}", { policy: a.policy.name, holder: holderText(a) })}
                onClick={() => {
                  clear();
                  setDetaching(a);
                }}
              >
                {t("Detach")}
              </Button>
            ) : null}
          </li>
        ))}
      </ul>
      <Confirm
        opened={detaching !== null}
        title={t("Detach the policy?")}
        action={t("Detach")}
        busy={busy}
        failure={failure}
        onClose={() => setDetaching(null)}
        onConfirm={() => void detach()}
      >
        {detaching
          ? t("{{policy}} no longer limits {{holder}}.", {
              policy: detaching.policy.name,
              holder: holderText(detaching),
            })
          : null}
      </Confirm>
    </>
  );
}
