import { Button } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { useNavigate } from "@tanstack/react-router";
import { useState } from "react";
import { useClient } from "urql";
import { fromGraphQL } from "../../api/errors";
import { useAction } from "../../hooks/useAction";
import { launchedInThisWindow, useLaunch } from "../../hooks/useLaunch";
import { toast } from "../../hooks/useToasts";
import { t } from "../../i18n";
import { Confirm } from "../Confirm";
import { RequestOfSession, RestartSession } from "./again";

interface Props {
  session: { id: string; name: string; replaced: boolean };
  /** Whether the session has ended. */
  over: boolean;
  own: boolean;
}

/** Starts a session again: as a new one with changes, or with the same request and name. */
export function Again({ session, over, own }: Props) {
  const client = useClient();
  const launch = useLaunch();
  const navigate = useNavigate();
  const [confirming, setConfirming] = useDisclosure(false);
  const [reading, setReading] = useState(false);
  const restart = useAction(RestartSession);

  async function clone() {
    setReading(true);
    const { data, error } = await client.query(RequestOfSession, { id: session.id }).toPromise();
    setReading(false);
    const node = data?.node;
    if (error) toast({ failure: fromGraphQL(error) });
    else if (node && "request" in node && node.request)
      launch({ base: { kind: "session", id: session.id, name: session.name, request: node.request } });
  }
  async function again() {
    const done = await restart.run({ input: { id: session.id } });
    if (!done) return;
    setConfirming.close();
    launchedInThisWindow.add(done.restartSession.session.id);
    await navigate({ to: "/sessions/$id", params: { id: done.restartSession.session.id } });
  }
  return (
    <>
      <Button variant="default" onClick={() => void clone()} loading={reading}>
        {t("Clone")}
      </Button>
      {own && !session.replaced ? (
        <Button
          variant="default"
          onClick={over ? () => void again() : setConfirming.open}
          loading={over && restart.busy}
        >
          {t("Restart")}
        </Button>
      ) : null}
      <Confirm
        opened={confirming || (over && restart.failure !== null)}
        title={t("Restart {{name}}?", { name: session.name })}
        action={t("Restart")}
        busy={restart.busy}
        failure={restart.failure}
        onConfirm={() => void again()}
        onClose={() => {
          restart.clear();
          setConfirming.close();
        }}
      >
        {over
          ? t("A new session with the same request and name starts.")
          : t(
              "The session ends, and what it does not keep in folders is lost. Then a new session with the same request and name starts.",
            )}
      </Confirm>
    </>
  );
}
