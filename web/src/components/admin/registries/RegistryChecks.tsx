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
      <table className="grid" aria-label={t("Checks")}>
        <tbody>
          {checks.map((c) => (
            <tr key={c.step}>
              <th scope="row">{word("RegistryCheckStep", c.step)}</th>
              <td className={c.works ? "" : "tone-bad"}>{c.works ? t("works") : t("does not work")}</td>
              <td className="dim">{c.text}</td>
            </tr>
          ))}
        </tbody>
      </table>
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
