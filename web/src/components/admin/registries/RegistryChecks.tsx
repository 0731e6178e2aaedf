import { Modal } from "@mantine/core";
import { useEffect } from "react";
import { graphql } from "../../../api/graphql";
import { useAction } from "../../../hooks/useAction";
import { t } from "../../../i18n";
import { word } from "../../../words";
import { FailureNote } from "../../Note";
import type { Registry } from "./registry";

const TestRegistry = graphql(
  `mutation TestRegistry($input: TestRegistryInput!) { testRegistry(input: $input) { checks { step works text } } }`,
);

/** Tests a registry when it opens, and says what works. */
export function RegistryChecks({ registry, onClose, checks, onChecks }: Props) {
  const test = useAction(TestRegistry);
  const { run } = test;
  useEffect(() => {
    void run({ input: { id: registry.id } }).then((done) => {
      if (done) onChecks(done.testRegistry.checks);
    });
  }, [run, registry.id, onChecks]);
  return (
    <Modal
      opened
      onClose={onClose}
      title={<h2>{t("Test of {{name}}", { name: registry.name })}</h2>}
      closeButtonProps={{ "aria-label": t("Close") }}
    >
      <FailureNote failure={test.failure} />
      {test.busy ? <p className="dim">{t("Testing")}</p> : null}
      <ul className="rows" aria-label={t("Checks")}>
        {checks.map((c) => (
          <li key={c.step}>
            <b>{word("RegistryCheckStep", c.step)}</b>{" "}
            <span className={c.works ? "" : "tone-bad"}>{c.works ? t("works") : t("does not work")}</span>
            <div className="dim">{c.text}</div>
          </li>
        ))}
      </ul>
    </Modal>
  );
}

export interface Check {
  step: "REACHABLE" | "TLS" | "LOGIN" | "LISTING";
  works: boolean;
  text: string;
}

interface Props {
  registry: Registry;
  checks: readonly Check[];
  onChecks: (checks: readonly Check[]) => void;
  onClose: () => void;
}
