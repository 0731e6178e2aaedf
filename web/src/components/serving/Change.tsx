import { Button } from "@mantine/core";
import { useState } from "react";
import { useAction } from "../../hooks/useAction";
import { t } from "../../i18n";
import { word } from "../../words";
import { Confirm } from "../Confirm";
import { type DeploymentDetail, PromoteDeployment, RollBackDeployment } from "./serving";

interface Props {
  deployment: DeploymentDetail;
  editable: boolean;
}

/** Shows how the requests are divided between revisions, and the change in progress with its buttons. */
export function Change({ deployment: d, editable }: Props) {
  const [asking, setAsking] = useState<"promote" | "rollback" | null>(null);
  const promote = useAction(PromoteDeployment);
  const back = useAction(RollBackDeployment);
  const changing = d.current !== d.target;
  const shares = [...d.traffic].sort((a, b) => a.revision - b.revision);
  const moves = changing && d.strategy.kind !== "ROLLING";
  return (
    <section className="panel pad stack" aria-label={t("Traffic")}>
      <div className="row">
        <h2>{t("Traffic")}</h2>
        <div className="push row">
          {moves && editable ? <Button onClick={() => setAsking("promote")}>{t("Promote")}</Button> : null}
          {editable && (changing || d.current > 1) ? (
            <Button variant="default" onClick={() => setAsking("rollback")}>
              {changing ? t("Give up the change") : t("Roll back")}
            </Button>
          ) : null}
        </div>
      </div>
      {changing ? (
        <p>
          {t("{{strategy}} change from revision {{from}} to {{to}}.", {
            strategy: word("DeploymentStrategyKind", d.strategy.kind),
            from: d.current,
            to: d.target,
          })}
        </p>
      ) : null}
      <div className="shares" aria-hidden="true">
        {shares.map((s) => (
          <i key={s.revision} className={mark(d, s.revision)} style={{ width: `${s.percent}%` }} />
        ))}
      </div>
      <div className="row">
        {shares.map((s) => (
          <span key={s.revision}>
            <span className={`dot ${mark(d, s.revision)}`} aria-hidden="true" />
            {t("Revision {{number}}: {{percent}} % of the requests", { number: s.revision, percent: s.percent })}
          </span>
        ))}
        {shares.length === 0 ? <span className="dim">{t("No revision gets requests yet.")}</span> : null}
      </div>
      <Confirm
        opened={asking === "promote"}
        title={t("Promote revision {{number}}?", { number: d.target })}
        action={t("Promote")}
        busy={promote.busy}
        failure={promote.failure}
        onConfirm={async () => {
          if (await promote.run({ input: { id: d.id } })) setAsking(null);
        }}
        onClose={() => setAsking(null)}
      >
        {t("All requests go to revision {{to}} now, and the replicas of revision {{from}} end after their requests.", {
          from: d.current,
          to: d.target,
        })}
      </Confirm>
      <Confirm
        opened={asking === "rollback"}
        title={changing ? t("Give up the change?") : t("Roll back?")}
        action={changing ? t("Give up the change") : t("Roll back")}
        busy={back.busy}
        failure={back.failure}
        onConfirm={async () => {
          if (await back.run({ input: { id: d.id } })) setAsking(null);
        }}
        onClose={() => setAsking(null)}
      >
        {changing
          ? t("All requests go to revision {{from}} again, and the replicas of revision {{to}} end.", {
              from: d.current,
              to: d.target,
            })
          : t(
              "The deployment changes to the revision that was current before revision {{number}}. To choose another one, use the tab Revisions.",
              { number: d.current },
            )}
      </Confirm>
    </section>
  );
}

const mark = (d: DeploymentDetail, revision: number) => (d.current !== d.target && revision === d.target ? "next" : "");
